//! The instructions of aarch64.

pub(in super::super) const ENGINE: &str = "aarch64 loads and stores in assembly, eight a turn";

macro_rules! loads {
    ($at:ident, $first:expr, $turns:ident, $step:expr, $mask:expr, $d1:literal $d2:literal $d3:literal $d4:literal $d5:literal $d6:literal $d7:literal) => {{
        let (mut a, mut b) = (0u64, 0u64);
        std::arch::asm!(
            ".p2align 6",
            "2:",
            "add {p}, {at}, {o}",
            "ldr {t0}, [{p}]",
            concat!("ldr {t1}, [{p}, #", $d1, "]"),
            concat!("ldr {t2}, [{p}, #", $d2, "]"),
            concat!("ldr {t3}, [{p}, #", $d3, "]"),
            concat!("ldr {t4}, [{p}, #", $d4, "]"),
            concat!("ldr {t5}, [{p}, #", $d5, "]"),
            concat!("ldr {t6}, [{p}, #", $d6, "]"),
            concat!("ldr {t7}, [{p}, #", $d7, "]"),
            "add {o}, {o}, #{step}",
            "and {o}, {o}, {mask}",
            "add {a}, {a}, {t0}",
            "add {b}, {b}, {t1}",
            "add {a}, {a}, {t2}",
            "add {b}, {b}, {t3}",
            "add {a}, {a}, {t4}",
            "add {b}, {b}, {t5}",
            "add {a}, {a}, {t6}",
            "add {b}, {b}, {t7}",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            at = in(reg) $at,
            p = out(reg) _,
            o = inout(reg) $first => _,
            mask = in(reg) $mask,
            turns = inout(reg) $turns => _,
            a = inout(reg) a,
            b = inout(reg) b,
            t0 = out(reg) _,
            t1 = out(reg) _,
            t2 = out(reg) _,
            t3 = out(reg) _,
            t4 = out(reg) _,
            t5 = out(reg) _,
            t6 = out(reg) _,
            t7 = out(reg) _,
            step = const $step,
            options(nostack, readonly),
        );
        a.wrapping_add(b)
    }};
}

macro_rules! stores {
    ($at:ident, $first:expr, $turns:ident, $value:ident, $step:expr, $mask:expr, $($d:literal)*) => {
        std::arch::asm!(
            ".p2align 6",
            "2:",
            "add {p}, {at}, {o}",
            "str {value}, [{p}]",
            $(concat!("str {value}, [{p}, #", $d, "]"),)*
            "add {value}, {value}, {more}",
            "add {o}, {o}, #{step}",
            "and {o}, {o}, {mask}",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            at = in(reg) $at,
            p = out(reg) _,
            o = inout(reg) $first => _,
            mask = in(reg) $mask,
            turns = inout(reg) $turns => _,
            value = inout(reg) $value => _,
            more = in(reg) super::STEP,
            step = const $step,
            options(nostack),
        )
    };
}

pub(super) use {loads, stores};
