//! Tables of drives on which a flush does more or less than on `cache`.

use super::{row, Row};

pub const THROUGH: &[Row] = &[
    row("what has completed is stable", "w0=A; w1=B", &["2: .. A.", "2: A. AB", "1: AB"]),
    row("a request under way may be kept", "a<w0=A; w1=B", &["4: .. A. .B AB", "2: .B AB"]),
    row("in the order of completion", "a<w0=A; b<w1=B; b>; a>", &["4: .. A. .B AB", "1: AB"]),
    row(
        "as a crash after the first of them shows",
        "a<w0=A; b<w1=B; b>; c<w.8=C; a>",
        &["4: .. A. .B AB", "4: .B AB .[CBBBBBBB] A[CBBBBBBB]", "2: AB A[CBBBBBBB]"],
    ),
    row(
        "a crash after the start of an operation is another one",
        "a<w0=A; start; f<flush; a>",
        &["2: .. A.", "2: .. A.", "1: A."],
    ),
    row("a flush has nothing to do", "w0=A; flush; b<w1=B", &["2: .. A.", "2: A. AB"]),
    row("nor has FUA", "w0=A+fua; b<w1=B+fua", &["2: .. A.", "2: A. AB"]),
    row("a PREFLUSH write waits for nothing", "a<w0=A; b<w1=B+pre; a>", &["4: .. A. .B AB", "2: A. AB"]),
    row("content never runs backwards", "a<w0=A; w0=B; a>", &["4: .. A. B.*2", "1: B."]),
    row("the blocks of a request are independent", "w.0-15=A", &["4: .. A. .A AA", "1: AA"]),
    row("a discard is stable when it completes", "discard 0", &["2: .. 0.", "1: 0."]),
    row("what the set-up left under way is in flight", "a<w0=A; w1=B; durable; a>", &["2: .B AB", "1: AB"]),
];

pub const PLP: &[Row] = &[
    row("a request under way tears", "w.0-1=A", &["4: .. [A.......]. [.A......]. [AA......].", "1: [AA......]."]),
    row(
        "one that has completed does not",
        "w.0-1=A; durable; w.1=B",
        &["2: [AA......]. [AB......].", "1: [AB......]."],
    ),
];

pub const BARRIER: &[Row] = &[
    row("a flush does not persist", "w0=A; flush", &["2: .. A."]),
    row("it orders", "w0=A; flush; w1=B", &["1: ..", "2: A. AB"]),
    row("a crash keeps a prefix of the epochs", "w0=A; flush; w0=B; flush; w0=C", &["1: ..", "1: A.", "2: B. C."]),
    row(
        "and any pieces of the next one",
        "w.0=A; w.1=B; flush; w.2=C; w.3=D",
        &["3: .. [A.......]. [.B......].", "4: [AB......]. [ABC.....]. [AB.D....]. [ABCD....]."],
    ),
    row("the blocks of a write are pieces", "w.0-15=A; flush; w0=B", &["3: .. A. .A", "2: AA BA"]),
    row("a flush of nothing new orders no more", "flush; w0=A; flush; flush; w1=B", &["1: ..", "2: A. AB"]),
    row("what completes after its submission is not before it", "a<w0=A; f<flush; a>; f>; w1=B", &["4: .. A. .B AB"]),
    row("what never completes is not either", "a<w0=A; flush; w1=B", &["4: .. A. .B AB"]),
    row("what is submitted before it completes is not behind it", "w0=A; f<flush; w1=B; f>", &["4: .. A. .B AB"]),
    row("a flush that never completes orders nothing", "w0=A; f<flush; w1=B", &["4: .. A. .B AB"]),
    row(
        "of two flushes the later has before it what both have",
        "w.0=A; f<flush; w.1=B; g<flush; g>; f>; w.2=C",
        &["3: .. [A.......]. [.B......].", "2: [AB......]. [ABC.....]."],
    ),
    row(
        "of two flushes the earlier orders only its own",
        "w.0=A; f<flush; w.1=B; g<flush; f>; w.2=C; g>; w.3=D",
        &["2: .. [.B......].", "2: [A.......]. [A.C.....].", "4: [AB......]. [ABC.....]. [AB.D....]. [ABCD....]."],
    ),
    row("a PREFLUSH write is behind its flush", "w0=A; w1=B+pre", &["1: ..", "2: A. AB"]),
    row("also before it completes", "w0=A; b<w1=B+pre", &["1: ..", "2: A. AB"]),
    row(
        "others are behind its flush once it has completed",
        "w.0=A; b<w.1=B+pre; w.2=C; b>; w.3=D",
        &[
            "2: .. [..C.....].",
            "8: [A.......]. [AB......]. [A.C.....]. [ABC.....]. [A..D....]. [AB.D....]. [A.CD....]. [ABCD....].",
        ],
    ),
    row("FUA orders nothing and persists nothing", "w0=A+fua; w1=B", &["4: .. A. .B AB"]),
    row("a commit record orders what is before it", "w0=A; w1=B+pre+fua; w0=C", &["1: ..", "4: A. AB C. CB"]),
    row("a discard is ordered too", "w0=A; flush; discard 0; flush; w0=B", &["1: ..", "1: A.", "2: 0. B."]),
    row("the set-up is stable", "w0=A; durable; w1=B; flush; w0=C", &["1: A.", "2: AB CB"]),
    row("its flush orders too", "a<w0=A; w1=B; durable; a>; flush; w1=C", &["1: .B", "2: AB AC"]),
    row("content never runs backwards", "a<w0=A; w0=B; flush; w1=C; a>", &["2: .. A.", "4: B.*2 BC*2"]),
    row("a content may come back", "w0=A; flush; w0=.; flush; w1=B", &["1: ..", "1: A.", "2: .. .B"]),
    row("a write that changes nothing may be lost", "w0=.; w1=A; flush; w0=B", &["3: ..*2 .A", "2: .A BA"]),
    row("hidden by a later write of its epoch", "w0=A; w0=B; flush; w1=C", &["3: .. A. B.", "2: B. BC"]),
];
