//! The instructions of x86-64.

pub(in super::super) const ENGINE: &str = "x86_64 loads and stores in assembly, eight a turn";

/// Loads of a turn are added to four sums, so that no addition waits for the load before it.
macro_rules! loads {
    ($at:ident, $first:expr, $turns:ident, $step:expr, $mask:expr, $d1:literal $d2:literal $d3:literal $d4:literal $d5:literal $d6:literal $d7:literal) => {{
        let (mut a, mut b, mut c, mut d) = (0u64, 0u64, 0u64, 0u64);
        std::arch::asm!(
            ".p2align 6",
            "2:",
            "add {a}, qword ptr [{at} + {o}]",
            concat!("add {b}, qword ptr [{at} + {o} + ", $d1, "]"),
            concat!("add {c}, qword ptr [{at} + {o} + ", $d2, "]"),
            concat!("add {d}, qword ptr [{at} + {o} + ", $d3, "]"),
            concat!("add {a}, qword ptr [{at} + {o} + ", $d4, "]"),
            concat!("add {b}, qword ptr [{at} + {o} + ", $d5, "]"),
            concat!("add {c}, qword ptr [{at} + {o} + ", $d6, "]"),
            concat!("add {d}, qword ptr [{at} + {o} + ", $d7, "]"),
            "add {o}, {step}",
            "and {o}, {mask}",
            "dec {turns}",
            "jnz 2b",
            at = in(reg) $at,
            o = inout(reg) $first => _,
            turns = inout(reg) $turns => _,
            a = inout(reg) a,
            b = inout(reg) b,
            c = inout(reg) c,
            d = inout(reg) d,
            step = const $step,
            mask = const $mask,
            options(nostack, readonly),
        );
        a.wrapping_add(b).wrapping_add(c).wrapping_add(d)
    }};
}

macro_rules! stores {
    ($at:ident, $first:expr, $turns:ident, $value:ident, $step:expr, $mask:expr, $($d:literal)*) => {
        std::arch::asm!(
            ".p2align 6",
            "2:",
            "mov qword ptr [{at} + {o}], {value}",
            $(concat!("mov qword ptr [{at} + {o} + ", $d, "], {value}"),)*
            "add {value}, {more}",
            "add {o}, {step}",
            "and {o}, {mask}",
            "dec {turns}",
            "jnz 2b",
            at = in(reg) $at,
            o = inout(reg) $first => _,
            turns = inout(reg) $turns => _,
            value = inout(reg) $value => _,
            more = in(reg) super::STEP,
            step = const $step,
            mask = const $mask,
            options(nostack),
        )
    };
}

pub(super) use {loads, stores};
