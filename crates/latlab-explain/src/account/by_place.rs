//! Time on the CPU by function and by source line: the samples of each category, by where they fell, divide
//! what it took.
//!
//! Each table sums to the share of wall time in which a thread ran. What is not listed is one row; so is what
//! is known of the kernel by other means than samples.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::Category;
use crate::account::mix::{KERNEL, Mix, Side, WITHOUT_NAME};
use crate::account::sampled::{Sampled, Share};
use crate::model::{Counts, Line, OnCpu, Symbol};

/// Rows that are listed.
pub(crate) const MOST_LISTED: usize = 20;

/// Of wall time: less is rounding.
const LEAST: f64 = 1e-9;

/// A share of wall time, and what it counts as.
#[derive(Clone, Debug, Default)]
struct Got {
    share: Share,
    by: BTreeMap<Category, f64>,
}

impl Got {
    fn add(&mut self, category: Category, share: Share) {
        self.share = self.share.and(share);
        *self.by.entry(category).or_default() += share.of;
    }

    /// Largest first.
    fn categories(&self) -> Vec<Counts> {
        let by = self.by.iter().filter(|by| *by.1 > 0.0);
        let mut by: Vec<Counts> = by.map(|(&name, &share)| Counts { name, share }).collect();
        by.sort_by(|a, b| b.share.total_cmp(&a.share));
        by
    }
}

/// A row's part of the time on a CPU, and what it counts as: most of it, and all where that is several.
fn on_cpu(object: &str, mut categories: Vec<Counts>, share: Share, sampled: &Sampled) -> OnCpu {
    let range = share.range();
    let category = categories.first().map(|of| of.name);
    if categories.len() < 2 {
        categories.clear();
    }
    OnCpu {
        object: object.to_owned(),
        category,
        categories,
        share: share.of,
        low: range.low,
        high: range.high,
        cpu_share: share.of / sampled.on_cpu.max(1e-12),
    }
}

/// The row of the kernel, or of what of it no sample tells.
fn of_kernel(unmet: f64, all: f64) -> &'static str {
    if unmet < all { "[kernel, by counts alone]" } else { "[all of the kernel]" }
}

/// The row of the program's own code, or of what of it nothing was recorded.
fn of_program(unmet: f64, all: f64) -> &'static str {
    if unmet < all { "[of the program, not recorded]" } else { "[all of the program]" }
}

fn is_empty(mix: &Mix) -> bool {
    mix.total().sum <= 0.0
}

/// The name of the row for what is not listed.
fn rest(places: usize) -> String {
    if places > 0 {
        format!("[{places} more]")
    } else {
        // Code that is in no file that was seen to be mapped.
        "[not placed]".to_owned()
    }
}

/// The functions, heaviest first; nothing without samples.
pub(crate) fn symbols(mix: &Mix, sampled: &Sampled) -> Vec<Symbol> {
    if is_empty(mix) {
        return Vec::new();
    }
    let mut places: HashMap<(&str, &str), Got> = HashMap::new();
    for (category, name, object, weight) in mix.functions(sampled.tail) {
        let share = sampled.own(category, Side::of(object), weight);
        places.entry((name, object)).or_default().add(category, share);
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by(|a, b| b.1.share.of.total_cmp(&a.1.share.of).then_with(|| a.0.cmp(&b.0)));
    let row = |name: String, object: &str, of: Vec<Counts>, share: Share| Symbol {
        name,
        on_cpu: on_cpu(object, of, share, sampled),
    };
    let listed = places.iter().take(MOST_LISTED);
    let mut rows: Vec<Symbol> = listed
        .map(|((name, object), got)| row((*name).to_owned(), object, got.categories(), got.share))
        .collect();
    let (all, unmet) = sampled.side(Side::Kernel);
    if unmet > LEAST {
        let name = of_kernel(unmet, all).to_owned();
        rows.push(row(name, KERNEL, Vec::new(), sampled.rest(unmet)));
    }
    let (all, unmet) = sampled.side(Side::User);
    if unmet > LEAST {
        let name = of_program(unmet, all).to_owned();
        rows.push(row(name, "", Vec::new(), sampled.rest(unmet)));
    }
    rows.sort_by(|a, b| b.on_cpu.share.total_cmp(&a.on_cpu.share));
    // What was not kept for want of room is in the rest, too.
    let left = sampled.on_cpu - rows.iter().map(|row| row.on_cpu.share).sum::<f64>();
    if left > LEAST {
        let name = rest(places.len().saturating_sub(MOST_LISTED));
        rows.push(row(name, "", Vec::new(), sampled.rest(left)));
    }
    rows
}

/// Where a line is reported: file and line of an offset in a file.
pub(crate) trait Lines {
    /// The innermost one, where code of another function was put in line.
    fn line(&mut self, path: &str, offset: u64) -> Option<(Rc<str>, u32)>;
}

/// Share of the samples of user code whose line is not known; `None` without any.
pub(crate) fn lineless(lines: &[Line]) -> Option<f64> {
    let user: f64 =
        lines.iter().filter(|line| line.on_cpu.object != KERNEL).map(|line| line.on_cpu.share).sum();
    let known: f64 = lines.iter().filter(|line| line.line.is_some()).map(|line| line.on_cpu.share).sum();
    (user > 0.0).then(|| (1.0 - known / user).max(0.0))
}

/// What a line got, and the functions, each in its file, that it was in.
type OfLine = (Got, HashMap<(Rc<str>, Rc<str>), f64>);

/// What a row of lines is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Of {
    Line(Rc<str>, u32),
    Object(Rc<str>),
}

/// The lines, heaviest first; nothing without samples.
pub(crate) fn lines(mix: &Mix, sampled: &Sampled, names: &mut impl Lines) -> Vec<Line> {
    if is_empty(mix) {
        return Vec::new();
    }
    let mut places: HashMap<Of, OfLine> = HashMap::new();
    for (category, path, offset, spot) in mix.spots(sampled.tail) {
        let of = match names.line(path, offset) {
            Some((file, line)) => Of::Line(file, line),
            None => Of::Object(Rc::clone(&spot.object)),
        };
        let (got, functions) = places.entry(of).or_default();
        got.add(category, sampled.own(category, Side::User, spot.weight));
        let function = spot.function.unwrap_or_else(|| Rc::from(WITHOUT_NAME));
        *functions.entry((function, spot.object)).or_default() += spot.weight;
    }
    let row = |of: &Of, function: String, object: &str, by: Vec<Counts>, share: Share| {
        let (file, line) = match of {
            Of::Line(file, line) => (Some(file.to_string()), Some(*line)),
            Of::Object(_) => (None, None),
        };
        Line { file, line, function, on_cpu: on_cpu(object, by, share, sampled) }
    };
    let mut places: Vec<_> = places.into_iter().collect();
    let share = |place: &(Of, OfLine)| place.1.0.share.of;
    places.sort_by(|a, b| share(b).total_cmp(&share(a)).then_with(|| a.0.cmp(&b.0)));
    let listed = places.iter().take(MOST_LISTED);
    let mut rows: Vec<Line> = listed
        .map(|(of, (got, functions))| {
            let most = functions.iter().max_by(|a, b| a.1.total_cmp(b.1).then_with(|| b.0.cmp(a.0)));
            let (function, object) = most.map_or(("", ""), |(key, _)| (&*key.0, &*key.1));
            match of {
                Of::Line(..) => row(of, function.to_owned(), object, got.categories(), got.share),
                Of::Object(object) => {
                    let name = "[no line known]".to_owned();
                    row(of, name, object, Vec::new(), got.share)
                }
            }
        })
        .collect();
    let nowhere = |object| Of::Object(Rc::from(object));
    let (kernel, _) = sampled.side(Side::Kernel);
    if kernel > LEAST {
        let name = "[all of the kernel]".to_owned();
        let share = sampled.rest(kernel);
        rows.push(row(&nowhere(KERNEL), name, KERNEL, Vec::new(), share));
    }
    rows.sort_by(|a, b| b.on_cpu.share.total_cmp(&a.on_cpu.share));
    let left = sampled.on_cpu - rows.iter().map(|row| row.on_cpu.share).sum::<f64>();
    if left > LEAST {
        let name = rest(places.len().saturating_sub(MOST_LISTED));
        rows.push(row(&nowhere(""), name, "", Vec::new(), sampled.rest(left)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::interval::Range;
    use crate::account::mix::Spot;
    use crate::rules::{Reason, Rules};

    fn mix(of: &[(Category, &str, &str, f64)]) -> Mix {
        let mut mix = Mix::default();
        for (at, (category, name, object, weight)) in of.iter().enumerate() {
            let reason = Rules::built_in().whole(*category);
            mix.sample(reason, *weight);
            if *object == KERNEL {
                mix.in_kernel(reason, *weight);
            }
            mix.function(*category, name, object, *weight);
            if *object != KERNEL {
                let spot =
                    Spot { function: Some(Rc::from(*name)), object: Rc::from(*object), weight: *weight };
                mix.spot(*category, &Rc::from(format!("/bin/{object}")), at as u64, spot);
            }
        }
        mix
    }

    fn is(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 1e-9
    }

    /// A thread ran for 0.8 of wall time: as the samples have it, or in user code for this part of that.
    fn sampled(mix: &Mix, user: Option<f64>) -> Sampled {
        let total = mix.total();
        let mut spent: BTreeMap<(Category, Side), Share> = BTreeMap::new();
        for (reason, weight) in mix.reasons() {
            let (category, kernel) = (Rules::built_in().category(reason), mix.kernel_of(reason));
            for (side, weight) in [(Side::User, weight.sum - kernel), (Side::Kernel, kernel)] {
                spent.entry((category, side)).or_default().of += 0.8 * weight / total.sum;
            }
        }
        if let Some(user) = user {
            spent.entry((Category::PageFaults, Side::Kernel)).or_default().of += 1e-12;
            for (side, part) in [(Side::User, user), (Side::Kernel, 1.0 - user)] {
                let all = || spent.iter().filter(|(key, _)| key.1 == side);
                let by = 0.8 * part / all().map(|(_, share)| share.of).sum::<f64>();
                spent
                    .iter_mut()
                    .filter(|(key, _)| key.1 == side)
                    .for_each(|(_, share)| *share = share.times(by));
            }
        }
        let worth = total.worth();
        Sampled::of(&spent, mix, Rules::built_in(), 0.0, worth, worth)
    }

    /// The program has lines, the library none.
    struct Fixed;

    impl Lines for Fixed {
        fn line(&mut self, path: &str, offset: u64) -> Option<(Rc<str>, u32)> {
            let line = u32::try_from(offset).unwrap() / 2 + 10;
            path.ends_with("list").then(|| (Rc::from("list.c"), line))
        }
    }

    const LIST: [(Category, &str, &str, f64); 5] = [
        (Category::Compute, "main", "list", 2e6),
        (Category::Compute, "main", "list", 1e6),
        (Category::Allocator, "malloc", "libc.so.6", 3e6),
        (Category::PageFaults, "clear_page_erms", KERNEL, 3e6),
        (Category::StartAndExit, "clear_page_erms", KERNEL, 1e6),
    ];

    #[test]
    fn functions_sum_to_the_time_on_the_cpu_and_categories_of_one_are_one_row() {
        let mix = mix(&LIST);
        let rows = symbols(&mix, &sampled(&mix, None));
        assert!(is(rows.iter().map(|row| row.on_cpu.share).sum(), 0.8));
        assert!(is(rows.iter().map(|row| row.on_cpu.cpu_share).sum(), 1.0));
        assert_eq!(rows[0].name, "clear_page_erms");
        assert_eq!(rows[0].on_cpu.category, Some(Category::PageFaults));
        assert!((rows[0].on_cpu.share - 0.32).abs() < 1e-9);
        assert!(
            rows.iter().all(|row| row.on_cpu.low <= row.on_cpu.share && row.on_cpu.share <= row.on_cpu.high)
        );
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn a_function_has_no_more_than_its_category_and_says_so_of_each() {
        let mix = mix(&[
            (Category::FileIoCpu, "rep_movs", KERNEL, 7e6),
            (Category::FileIoCpu, "filemap_read", KERNEL, 1e6),
            (Category::Pipe, "rep_movs", KERNEL, 2e6),
            (Category::Compute, "main", "list", 90e6),
        ]);
        // The ledger knows by counts that there was less of the first, and more of what nobody saw.
        let spent = BTreeMap::from([
            ((Category::FileIoCpu, Side::Kernel), 0.044),
            ((Category::Pipe, Side::Kernel), 0.02),
            ((Category::PageFaults, Side::Kernel), 0.01),
            ((Category::Compute, Side::User), 0.8),
        ]);
        let known = |(key, of): (&_, &f64)| {
            let range = Range { low: 0.9 * of, high: 1.1 * of };
            (*key, Share::within(*of, range))
        };
        let spent = spent.iter().map(known).collect();
        let sampled = Sampled::of(&spent, &mix, Rules::built_in(), 0.0, 100.0, 100.0);
        let rows = symbols(&mix, &sampled);
        assert!(is(rows.iter().map(|row| row.on_cpu.share).sum(), 0.874));
        let copy = rows.iter().find(|row| row.name == "rep_movs").unwrap();
        assert_eq!(copy.on_cpu.category, Some(Category::FileIoCpu));
        let by: Vec<_> = copy.on_cpu.categories.iter().map(|of| (of.name, of.share)).collect();
        assert_eq!((by[0].0, by[1].0), (Category::FileIoCpu, Category::Pipe));
        assert!((by[0].1 - 0.0385).abs() < 1e-9 && (by[1].1 - 0.02).abs() < 1e-9);
        assert!((copy.on_cpu.share - 0.0585).abs() < 1e-9 && copy.on_cpu.high < 0.0385 + 0.02 + 0.01);
        let main = rows.iter().find(|row| row.name == "main").unwrap();
        assert!(main.on_cpu.categories.is_empty() && (main.on_cpu.share - 0.8).abs() < 1e-9);
        assert!(main.on_cpu.low < 0.72 && main.on_cpu.low > 0.7 && (main.on_cpu.high - 0.88).abs() < 1e-9);
        let counted = rows.iter().find(|row| row.name == "[kernel, by counts alone]");
        assert!((counted.unwrap().on_cpu.share - 0.01).abs() < 1e-9);
    }

    #[test]
    fn where_the_kernel_is_not_sampled_its_part_is_one_row_and_all_sum_to_the_same() {
        let mix = mix(&LIST[..3]);
        let rows = symbols(&mix, &sampled(&mix, Some(0.6)));
        assert!(is(rows.iter().map(|row| row.on_cpu.share).sum(), 0.8));
        let kernel = rows.iter().find(|row| row.on_cpu.object == KERNEL).unwrap();
        assert!((kernel.on_cpu.share - 0.32).abs() < 1e-9 && kernel.on_cpu.category.is_none());
        let lines = lines(&mix, &sampled(&mix, Some(0.6)), &mut Fixed);
        assert!(is(lines.iter().map(|row| row.on_cpu.share).sum(), 0.8));
    }

    #[test]
    fn what_is_known_better_of_the_kernels_part_is_kept_to() {
        let mix = mix(&LIST);
        // By the samples it is 0.6.
        let rows = symbols(&mix, &sampled(&mix, Some(0.5)));
        assert!(is(rows.iter().map(|row| row.on_cpu.cpu_share).sum(), 1.0));
        let kernel = rows.iter().find(|row| row.on_cpu.object == KERNEL).unwrap();
        assert!((kernel.on_cpu.cpu_share - 0.5).abs() < 1e-9);
        let main = rows.iter().find(|row| row.name == "main").unwrap();
        assert!((main.on_cpu.cpu_share - 0.25).abs() < 1e-9);
        let lines = lines(&mix, &sampled(&mix, Some(0.5)), &mut Fixed);
        assert!(is(lines.iter().map(|row| row.on_cpu.cpu_share).sum(), 1.0));
    }

    #[test]
    fn what_is_not_listed_is_the_rest() {
        let names: Vec<String> = (0..30).map(|at| format!("f{at}")).collect();
        let mut mix = mix(&LIST);
        for name in &names {
            mix.sample(Reason(0), 1e4);
            mix.function(Category::Compute, name, "list", 1e4);
        }
        // One that there was no room for.
        mix.sample(Reason(0), 1e4);
        let rows = symbols(&mix, &sampled(&mix, None));
        assert_eq!(rows.len(), MOST_LISTED + 1);
        assert!(is(rows.iter().map(|row| row.on_cpu.share).sum(), 0.8));
        assert_eq!(rows[MOST_LISTED].name, "[13 more]");
        assert_eq!(symbols(&Mix::default(), &Sampled::default()), []);
    }

    #[test]
    fn lines_are_listed_where_they_are_reported_and_what_has_none_is_said() {
        let mix = mix(&LIST);
        let rows = lines(&mix, &sampled(&mix, None), &mut Fixed);
        assert!(is(rows.iter().map(|row| row.on_cpu.share).sum(), 0.8));
        let main = rows.iter().find(|row| row.line == Some(10)).unwrap();
        assert_eq!((main.file.as_deref(), main.function.as_str()), (Some("list.c"), "main"));
        assert!((main.on_cpu.share - 0.8 * 0.3).abs() < 1e-9);
        let libc = rows.iter().find(|row| row.on_cpu.object == "libc.so.6").unwrap();
        assert_eq!((libc.line, libc.function.as_str()), (None, "[no line known]"));
        assert!((lineless(&rows).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(lineless(&[]), None);
    }
}
