//! Logs of Linux's dm-log-writes target: the functions of postcrash-dm-log-writes for Python.

use std::path::PathBuf;

use num_bigint::BigUint;
use postcrash_dm_log_writes::{self as dm_log_writes, LogError, LogItem};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::{raise, with_cursor, Recording};

/// Call `act` with a function that says whether to go on. It says no once a signal handler has raised, and the
/// handler's error is then passed on.
fn interruptible<R>(py: Python<'_>, act: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<R, LogError>) -> PyResult<R> {
    let mut signal = None;
    let result = act(&mut || match py.check_signals() {
        Ok(()) => true,
        Err(error) => {
            signal = Some(error);
            false
        }
    });
    result.map_err(|error| match error {
        LogError::Interrupted => signal.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())),
        LogError::Recording(error) => raise(error),
        LogError::Io { .. } => PyOSError::new_err(error.to_string()),
        LogError::Malformed { .. } | LogError::Refused { .. } => PyValueError::new_err(error.to_string()),
    })
}

/// What a log holds.
#[pyfunction]
fn scan_dm_log_writes(py: Python<'_>, log_path: PathBuf, disk_sectors: u64) -> PyResult<Bound<'_, PyDict>> {
    let summary = interruptible(py, |go_on| dm_log_writes::scan(&log_path, disk_sectors, go_on))?;
    let result = PyDict::new(py);
    let counts = [
        ("log_sector_bytes", summary.log_sector_bytes),
        ("entries", summary.entries),
        ("writes", summary.writes),
        ("fua_writes", summary.fua_writes),
        ("flushes", summary.flushes),
        ("discards", summary.discards),
        ("marks_left_out", summary.marks_left_out),
        ("metadata_flags", summary.metadata_flags),
        ("padded_writes", summary.padded_writes),
        ("interval_pieces_max", summary.interval_pieces_max),
        ("interval_pieces", summary.interval_pieces),
    ];
    for (name, count) in counts {
        result.set_item(name, count)?;
    }
    let marks: Vec<(u64, String)> = summary.marks.into_iter().map(|mark| (mark.event, mark.text)).collect();
    result.set_item("marks", marks)?;
    result.set_item("goes_on", summary.goes_on)?;
    Ok(result)
}

/// What a log holds, in order. Each entry has the number of recorded events before it.
#[pyfunction]
fn read_dm_log_writes<'py>(
    py: Python<'py>,
    log_path: PathBuf,
    disk_sectors: u64,
) -> PyResult<Vec<(Bound<'py, PyTuple>, u64)>> {
    let mut found = Vec::new();
    interruptible(py, |go_on| {
        dm_log_writes::entries(&log_path, disk_sectors, go_on, &mut |logged, events| found.push((logged, events)))
    })?;
    let tuple = |logged: LogItem| match logged {
        LogItem::Write { sector, data, fua } => ("write", sector, PyBytes::new(py, &data), fua).into_pyobject(py),
        LogItem::Discard { sector, sectors } => ("discard", sector, sectors).into_pyobject(py),
        LogItem::Flush { fua } => ("flush", fua).into_pyobject(py),
        LogItem::Mark { text } => ("mark", text).into_pyobject(py),
    };
    found.into_iter().map(|(logged, events)| Ok((tuple(logged)?, events))).collect()
}

/// Write the recording of a log.
#[pyfunction]
fn import_dm_log_writes(
    py: Python<'_>,
    log_path: PathBuf,
    disk_sectors: u64,
    out_path: PathBuf,
    metadata: &str,
) -> PyResult<()> {
    interruptible(py, |go_on| dm_log_writes::import(&log_path, disk_sectors, &out_path, metadata, go_on))
}

/// How many crash intervals a recording has, and how many crash states they have together. One interval is in memory at
/// a time.
#[pyfunction]
fn count_states(py: Python<'_>, recording: &Recording, base_path: PathBuf, model: &str) -> PyResult<(u32, BigUint)> {
    with_cursor(recording, base_path, model, |mut cursor| {
        let (mut intervals, mut states) = (0, BigUint::ZERO);
        while let Some(interval) = cursor.next_interval()? {
            py.check_signals()?;
            intervals += 1;
            states += interval.states();
        }
        Ok((intervals, states))
    })
}

/// Write the log of a recording.
#[pyfunction]
fn export_dm_log_writes<'py>(
    py: Python<'py>,
    recording: &Recording,
    out_path: PathBuf,
    marks: Vec<(u64, String)>,
) -> PyResult<Bound<'py, PyDict>> {
    let exported = interruptible(py, |go_on| dm_log_writes::export(&recording.0, &out_path, &marks, go_on))?;
    let result = PyDict::new(py);
    result.set_item("entries", exported.entries)?;
    result.set_item("unfinished", exported.unfinished)?;
    result.set_item("overtaken", exported.overtaken)?;
    result.set_item("fua_behind_flush", exported.fua_behind_flush)?;
    Ok(result)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scan_dm_log_writes, module)?)?;
    module.add_function(wrap_pyfunction!(read_dm_log_writes, module)?)?;
    module.add_function(wrap_pyfunction!(import_dm_log_writes, module)?)?;
    module.add_function(wrap_pyfunction!(export_dm_log_writes, module)?)?;
    module.add_function(wrap_pyfunction!(count_states, module)?)
}
