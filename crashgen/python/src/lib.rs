//! `postcrash._core`: recordings and crash intervals for Python. The types are described in postcrash/_core.pyi.

mod bounded;
mod dm_log_writes;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use bounded::BoundedCursor;
use num_bigint::BigUint;
use postcrash_core::calls::{CallNote, CallStep};
use postcrash_core::choice::{Choice, BELOW};
use postcrash_core::contents::{self, SectorExtent};
use postcrash_core::cursor::Cursor;
use postcrash_core::device::{self, DeviceModel};
use postcrash_core::ground::Base;
use postcrash_core::recording::{Event, Recording as CoreRecording, RecordingError, RecordingWriter};
use postcrash_core::space::Space;
use postcrash_stopped::system_calls::SYSTEM_CALLS;
use postcrash_wire::units::SECTOR_BYTES;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};

/// How many sectors of a disk are checked together when it is written to a file.
const CHUNK_SECTORS: u64 = 128;

fn raise(error: RecordingError) -> PyErr {
    match error {
        RecordingError::Io { .. } => PyOSError::new_err(error.to_string()),
        RecordingError::Malformed { .. } | RecordingError::Refused { .. } => PyValueError::new_err(error.to_string()),
    }
}

#[pyclass(frozen)]
struct Recording(CoreRecording);

#[pymethods]
impl Recording {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.allow_threads(|| CoreRecording::open(&path)).map(Recording).map_err(raise)
    }

    #[getter]
    fn disk_sectors(&self) -> u64 {
        self.0.disk_sectors()
    }

    #[getter]
    fn disks(&self) -> Vec<u64> {
        self.0.disks().sizes()
    }

    #[getter]
    fn metadata(&self) -> &str {
        self.0.metadata()
    }

    #[getter]
    fn digest(&self) -> String {
        self.0.digest().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.0.events().iter().map(|event| event_tuple(py, event)).collect()
    }

    fn calls<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.0.calls().iter().map(|note| self.call_tuple(py, note)).collect()
    }

    fn data<'py>(&self, py: Python<'py>, event: usize) -> PyResult<Bound<'py, PyBytes>> {
        match self.0.events().get(event) {
            Some(Event::Write { data, .. }) => Ok(PyBytes::new(py, &self.0.bytes()[data.clone()])),
            _ => Err(PyIndexError::new_err(format!("event {event} is not a write"))),
        }
    }

    fn contents<'py>(&self, py: Python<'py>, end: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let extents = contents::contents(&self.0, end);
        let tuple = |extent: &SectorExtent| match extent {
            SectorExtent::Data { sector, data } => ("data", *sector, PyBytes::new(py, data)).into_pyobject(py),
            SectorExtent::Zeros { sector, sectors } => ("zeros", *sector, *sectors).into_pyobject(py),
        };
        extents.iter().map(tuple).collect()
    }
}

impl Recording {
    fn call_tuple<'py>(&self, py: Python<'py>, note: &CallNote) -> PyResult<Bound<'py, PyTuple>> {
        match &note.step {
            CallStep::Begins { program, call } => {
                (note.events, "call-begins", note.thread, self.0.text(program), self.0.text(call)).into_pyobject(py)
            }
            CallStep::Ends { result } => (note.events, "call-ends", note.thread, *result).into_pyobject(py),
        }
    }
}

fn event_tuple<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyTuple>> {
    match *event {
        Event::Write { id, sector, ref data, fua, preflush } => {
            ("write", id, sector, data.len() / SECTOR_BYTES, fua, preflush).into_pyobject(py)
        }
        Event::Zero { id, sector, sectors, discard, .. } => ("zero", id, sector, sectors, discard).into_pyobject(py),
        Event::Flush { id, disk: 0 } => ("flush", id).into_pyobject(py),
        Event::Flush { id, disk } => ("flush", id, disk).into_pyobject(py),
        Event::Complete { id } => ("complete", id).into_pyobject(py),
        Event::Started { op } => ("started", op).into_pyobject(py),
        Event::Returned { op, errno } => ("returned", op, errno).into_pyobject(py),
        Event::Durable => ("durable",).into_pyobject(py),
    }
}

/// Choices, which are pairs in Python.
struct Choices(Vec<Choice>);

impl<'py> FromPyObject<'py> for Choices {
    fn extract_bound(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let pairs: Vec<(u32, u32)> = object.extract()?;
        Ok(Choices(pairs.into_iter().map(Choice::from).collect()))
    }
}

#[pyclass(frozen)]
struct Interval(postcrash_core::interval::Interval);

#[pymethods]
impl Interval {
    #[getter]
    fn index(&self) -> u32 {
        self.0.index
    }

    #[getter]
    fn instants(&self) -> Vec<(usize, u32, u32)> {
        self.0.instants.iter().map(|instant| (instant.event, instant.started, instant.returned)).collect()
    }

    #[getter]
    fn before_event(&self) -> usize {
        self.0.latest().event
    }

    #[getter]
    fn started(&self) -> u32 {
        self.0.latest().started
    }

    #[getter]
    fn returned(&self) -> u32 {
        self.0.latest().returned
    }

    #[getter]
    fn pieces(&self) -> Vec<(usize, u64, u64)> {
        self.0.pieces.iter().map(|piece| (piece.event, piece.sector, piece.sectors)).collect()
    }

    #[getter]
    fn absent(&self) -> Vec<usize> {
        self.0.absent.clone()
    }

    #[getter]
    fn components(&self) -> Vec<(u64, u64, Vec<BigUint>)> {
        let weights = |component: &postcrash_core::component::Component| {
            (0..component.versions.len() as u32).map(|version| component.weight(version)).collect()
        };
        self.0.components.iter().map(|component| (component.sector, component.sectors, weights(component))).collect()
    }

    #[getter]
    fn states(&self) -> BigUint {
        self.0.states()
    }

    #[getter]
    fn contents(&self) -> BigUint {
        self.0.contents()
    }

    fn covered(&self, choices: Choices) -> PyResult<BigUint> {
        self.check(&choices.0)?;
        Ok(self.0.covered(&choices.0))
    }

    fn lost(&self, choices: Choices) -> PyResult<Vec<u32>> {
        self.check(&choices.0)?;
        Ok(self.0.lost(&choices.0))
    }

    fn torn(&self, choices: Choices) -> PyResult<usize> {
        Ok(self.0.torn(&self.lost(choices)?))
    }
}

impl Interval {
    fn check(&self, choices: &[Choice]) -> PyResult<()> {
        let versions = |component: u32| self.0.components.get(component as usize).map_or(0, |c| c.versions.len());
        let mut components: Vec<u32> = choices.iter().map(|choice| choice.component).collect();
        components.sort_unstable();
        if let Some(pair) = components.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(PyValueError::new_err(format!("component {} is chosen twice", pair[0])));
        }
        match choices.iter().find(|choice| choice.version as usize >= versions(choice.component)) {
            None => Ok(()),
            Some(Choice { component, version }) => {
                Err(PyIndexError::new_err(format!("component {component} has no version {version}")))
            }
        }
    }
}

fn find_model(name: &str) -> PyResult<&'static dyn DeviceModel> {
    device::find(name).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn with_cursor<R>(
    recording: &Recording,
    base_path: PathBuf,
    model: &str,
    act: impl FnOnce(BoundedCursor<'_>) -> PyResult<R>,
) -> PyResult<R> {
    let model = find_model(model)?;
    let base = Base::open(&base_path).map_err(raise)?;
    let cursor = Cursor::new(&recording.0, &base, model);
    act(BoundedCursor::new(&recording.0, cursor, model.atomic_unit_sectors())?)
}

/// Every crash interval of a recording, in order.
#[pyfunction]
fn intervals(recording: &Recording, base_path: PathBuf, model: &str) -> PyResult<Vec<Interval>> {
    with_cursor(recording, base_path, model, |mut cursor| {
        let mut found = Vec::new();
        while let Some(interval) = cursor.next_interval()? {
            found.push(Interval(interval));
        }
        Ok(found)
    })
}

/// Call `act` with a crash interval of the recording and what lies under it, after checking that `choices` belong to
/// the interval.
fn with_state<R>(
    recording: &Recording,
    base_path: PathBuf,
    model: &str,
    interval: u32,
    choices: &[Choice],
    act: impl FnOnce(Space<'_>) -> PyResult<R>,
) -> PyResult<R> {
    with_cursor(recording, base_path, model, |mut cursor| {
        let found = loop {
            match cursor.next_interval()? {
                Some(found) if found.index != interval => continue,
                found => break found,
            }
        };
        let found = found.ok_or_else(|| PyIndexError::new_err(format!("no crash interval {interval}")))?;
        if let Some(reason) = &found.too_large {
            return Err(PyValueError::new_err(format!("crash interval {interval} cannot be looked at: {reason}")));
        }
        let found = Interval(found);
        found.check(choices)?;
        act(Space { content: cursor.get().content(), interval: &found.0 })
    })
}

/// The version of a component that a state with `choices` has.
fn version_of(choices: &[Choice], component: u32) -> u32 {
    choices.iter().find(|choice| choice.component == component).map_or(0, |choice| choice.version)
}

/// Bytes of one crash state.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn state_bytes<'py>(
    py: Python<'py>,
    recording: &Recording,
    base_path: PathBuf,
    model: &str,
    interval: u32,
    choices: Choices,
    sector: u64,
    sectors: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    with_state(recording, base_path, model, interval, &choices.0, |space| {
        if sector.checked_add(sectors).is_none_or(|end| end > recording.0.disk_sectors()) {
            return Err(PyIndexError::new_err(format!("{sectors} sectors from sector {sector} are not on the disk")));
        }
        let mut out: Vec<u8> = Vec::new();
        let bytes = sectors as usize * SECTOR_BYTES;
        out.try_reserve_exact(bytes).map_err(|_| PyMemoryError::new_err(format!("no memory for {sectors} sectors")))?;
        out.resize(bytes, 0);
        space.read(sector, &mut out, &mut |component| version_of(&choices.0, component));
        Ok(PyBytes::new(py, &out))
    })
}

/// Write the disk of one crash state to the file `path`. Zeros become holes.
#[pyfunction]
fn write_state(
    recording: &Recording,
    base_path: PathBuf,
    model: &str,
    interval: u32,
    choices: Choices,
    path: PathBuf,
) -> PyResult<()> {
    with_state(recording, base_path, model, interval, &choices.0, |space| {
        let file = File::create(&path)?;
        let sectors = recording.0.disk_sectors();
        file.set_len(sectors * SECTOR_BYTES as u64)?;
        let mut out = vec![0; CHUNK_SECTORS as usize * SECTOR_BYTES];
        for sector in (0..sectors).step_by(CHUNK_SECTORS as usize) {
            let chunk = &mut out[..(sectors - sector).min(CHUNK_SECTORS) as usize * SECTOR_BYTES];
            space.read(sector, chunk, &mut |component| version_of(&choices.0, component));
            if chunk.iter().any(|&byte| byte != 0) {
                file.write_all_at(chunk, sector * SECTOR_BYTES as u64)?;
            }
        }
        Ok(())
    })
}

/// Names of the device models.
#[pyfunction]
fn device_models() -> Vec<&'static str> {
    device::names().collect()
}

/// What Python sees of a device model.
#[pyclass(frozen, name = "DeviceModel")]
struct PyDeviceModel(&'static dyn DeviceModel);

#[pymethods]
impl PyDeviceModel {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        find_model(name).map(PyDeviceModel)
    }

    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    #[getter]
    fn untorn(&self) -> String {
        device::untorn(self.0)
    }

    #[getter]
    fn tears_blocks(&self) -> bool {
        self.0.tears_blocks()
    }

    #[getter]
    fn honours_flush(&self) -> bool {
        self.0.honours_flush()
    }

    #[getter]
    fn prose(&self) -> String {
        device::prose(self.0)
    }
}

#[derive(FromPyObject)]
enum DiskSectors {
    OfOne(u64),
    OfEach(Vec<u64>),
}

/// Write a recording from tuples as `Recording.events` gives them, with a write's data in place of its length.
#[pyfunction]
fn write_recording(
    path: PathBuf,
    disk_sectors: DiskSectors,
    metadata: &str,
    events: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let sizes = match disk_sectors {
        DiskSectors::OfOne(sectors) => vec![sectors],
        DiskSectors::OfEach(sizes) => sizes,
    };
    let mut writer = RecordingWriter::create(&path, &sizes, metadata).map_err(raise)?;
    for (index, event) in events.try_iter()?.enumerate() {
        let event = event?.downcast_into::<PyTuple>()?;
        write_event(&mut writer, &event).map_err(|error| bad_event(index, &event, error))?;
    }
    // Another thread may run until the file is on the disk.
    events.py().allow_threads(|| writer.finish()).map_err(raise)
}

/// The same error with the event that it is about. An input/output error is returned as it is.
fn bad_event(index: usize, event: &Bound<'_, PyTuple>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyOSError>(event.py()) {
        return error;
    }
    let shown: String = event.to_string().chars().take(80).collect();
    PyValueError::new_err(format!("event {index}, {shown}: {}", error.value(event.py())))
}

fn write_event(writer: &mut RecordingWriter, event: &Bound<'_, PyTuple>) -> PyResult<()> {
    let number = |at: usize| event.get_item(at)?.extract::<u64>();
    let id = |at: usize| event.get_item(at)?.extract::<u32>();
    let flag = |at: usize| event.get_item(at)?.extract::<bool>();
    let text = |at: usize| event.get_item(at)?.extract::<String>();
    let kind: String = event.get_item(0)?.extract()?;
    let written = match kind.as_str() {
        "write" => {
            let data: PyBackedBytes = event.get_item(3)?.extract()?;
            writer.write(id(1)?, number(2)?, &data, flag(4)?, flag(5)?)
        }
        "zero" => writer.zero(id(1)?, number(2)?, number(3)?, flag(4)?),
        "flush" => writer.flush(id(1)?, if event.len() > 2 { id(2)? } else { 0 }),
        "complete" => writer.complete(id(1)?),
        "started" => writer.started(id(1)?),
        "returned" => writer.returned(id(1)?, id(2)?),
        "durable" => writer.durable(),
        "call-begins" => writer.call_begins(id(1)?, &text(2)?, &text(3)?),
        "call-ends" => writer.call_ends(id(1)?, event.get_item(2)?.extract()?),
        other => return Err(PyValueError::new_err(format!("unknown event '{other}'"))),
    };
    written.map_err(raise)
}

/// The places of a path and, before it, of the descriptor of its folder.
type PathPlaces = (Option<usize>, usize);

/// The table of system calls: name, effect, and places of the paths.
#[pyfunction]
fn system_calls() -> Vec<(&'static str, &'static str, Vec<PathPlaces>)> {
    SYSTEM_CALLS.iter().map(|call| (call.name(), call.effect.word(), call.paths())).collect()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("BELOW", BELOW)?;
    module.add_class::<Recording>()?;
    module.add_class::<Interval>()?;
    module.add_function(wrap_pyfunction!(intervals, module)?)?;
    module.add_function(wrap_pyfunction!(state_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(write_state, module)?)?;
    module.add_function(wrap_pyfunction!(device_models, module)?)?;
    module.add_class::<PyDeviceModel>()?;
    module.add_function(wrap_pyfunction!(write_recording, module)?)?;
    module.add_function(wrap_pyfunction!(system_calls, module)?)?;
    dm_log_writes::register(module)?;
    Ok(())
}
