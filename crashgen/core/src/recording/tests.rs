use super::*;

#[test]
fn a_guest_that_never_stops_writing_does_not_fill_the_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let mut writer = RecordingWriter::create(&path, &[8], "{}").expect("created");
    writer.left = 1024;
    writer.write(0, 0, &[7; 512], false, false).expect("there is room");
    writer.complete(0).expect("there is room");
    let error = writer.write(1, 0, &[7; 512], false, false).expect_err("there is none").to_string();
    assert!(error.contains("a recording of more than 16 GiB"), "{error}");
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0, "nothing is left");
}
