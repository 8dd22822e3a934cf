use std::io::Write;

use super::*;

fn lines_of(bytes: &[u8]) -> Vec<(u64, String, bool)> {
    let raw: Box<dyn Read + Send> = Box::new(io::Cursor::new(bytes.to_vec()));
    let mut lines = Lines::new(plain(raw).unwrap());
    let mut all = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        all.push((line.number, line.text.into_owned(), line.ended));
    }
    all
}

#[test]
fn ends_of_line_and_byte_order_mark_are_no_text() {
    // Breaks when CRLF or a mark reaches the first column's name.
    let got = lines_of(b"\xef\xbb\xbfindex, name\r\n0, A\n1, B");
    assert_eq!(
        got,
        [(1, "index, name".into(), true), (2, "0, A".into(), true), (3, "1, B".into(), false)]
    );
}

#[test]
fn utf16_of_powershell_is_text() {
    // Breaks when a log written by `>` on Windows is taken for no text at all.
    for little in [true, false] {
        let mut bytes = if little { vec![0xff, 0xfe] } else { vec![0xfe, 0xff] };
        for unit in "index, name\r\n0, \u{1f600}A\r\n".encode_utf16() {
            bytes.extend(if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
        }
        let text: Vec<String> = lines_of(&bytes).into_iter().map(|line| line.1).collect();
        assert_eq!(text, ["index, name", "0, \u{1f600}A"]);
    }
}

#[test]
fn gzip_is_told_by_its_bytes_and_members_join() {
    // Breaks when only the first member of an appended .gz is read.
    let mut bytes = Vec::new();
    for text in ["a\nb\n", "c\n"] {
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zip.write_all(text.as_bytes()).unwrap();
        bytes.extend(zip.finish().unwrap());
    }
    let text: Vec<String> = lines_of(&bytes).into_iter().map(|l| l.1).collect();
    assert_eq!(text, ["a", "b", "c"]);
}

#[test]
fn a_monstrous_line_is_cut_and_the_next_one_lives() {
    // Breaks when memory grows with a file that has no newline.
    let mut bytes = vec![b'x'; LINE_BYTES_MAX + 10];
    bytes.extend(b"\nnext\n");
    let got = lines_of(&bytes);
    assert_eq!(got.len(), 2);
    assert_eq!(got[0].1.len(), LINE_BYTES_MAX);
    assert_eq!(got[1], (2, "next".into(), true));
}

#[test]
fn paths_globs_and_folders_expand_once_in_order() {
    // Breaks when the order of a folder's listing decides the order of reading.
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.csv", "a.csv", ".hidden", "c.txt", "odd[1].csv"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let names = |paths: &[String]| -> Vec<String> {
        let inputs = Input::expand(paths).unwrap();
        inputs.iter().map(|i| i.name().rsplit('/').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[at("*.csv")]), ["a.csv", "b.csv", "odd[1].csv"]);
    assert_eq!(names(&[at("odd[1].csv")]), ["odd[1].csv"]);
    assert_eq!(names(&[at(""), at("a.csv")]).len(), 4);
    assert_eq!(names(&[at("b.csv"), at("?.csv")]), ["b.csv", "a.csv"]);
    assert_eq!(Input::expand(&["-"]).unwrap()[0].path(), None);
    let missing = Input::expand(&[at("none*.csv")]);
    assert!(matches!(missing, Err(IngestError::NoMatch { .. })));
    let missing = Input::expand(&[at("none.csv")]);
    assert!(matches!(missing, Err(IngestError::NoMatch { .. })));
}
