//! A quote that opens a cell and is never closed: it would swallow every line after it.

use csv::ByteRecord;

/// Lines that one row may honestly span: a job's name or command with line breaks in it.
const LINES_MAX: usize = 100;

/// Lines that a row swallowed after its own, if it looks so: it has line breaks in a cell and not
/// the width of the header, or more of them than a row has.
pub(super) fn swallowed(record: &ByteRecord, width: usize) -> Option<usize> {
    let breaks = record.as_slice().iter().filter(|byte| **byte == b'\n').count();
    (breaks > LINES_MAX || breaks > 0 && record.len() != width).then_some(breaks)
}

/// The lines of such a row as rows of their own, each with its line in the file.
pub(super) fn rows(record: &ByteRecord, line: u64, delimiter: u8) -> Vec<(u64, ByteRecord)> {
    let text = record.iter().collect::<Vec<_>>().join(&delimiter);
    let lines = text.split(|byte| *byte == b'\n').zip(line..);
    lines
        .filter(|(text, _)| !text.trim_ascii().is_empty())
        .map(|(text, line)| (line, row(text, delimiter)))
        .collect()
}

fn row(text: &[u8], delimiter: u8) -> ByteRecord {
    let paired = text.iter().filter(|byte| **byte == b'"').count() % 2 == 0;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .quoting(paired)
        .from_reader(text);
    let mut record = ByteRecord::new();
    // Text in memory is always read; one line is at most one row.
    let _ = reader.read_byte_record(&mut record);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_quote_costs_no_row() {
        let text = b"1,a,x\n2,\"5in screen,y\n3,b,z\n4,\"c,d\",w\n";
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&text[..]);
        let mut record = ByteRecord::new();
        assert!(reader.read_byte_record(&mut record).unwrap());
        assert_eq!(swallowed(&record, 3), None);
        assert!(reader.read_byte_record(&mut record).unwrap());
        assert!(swallowed(&record, 3).is_some());
        let found = rows(&record, 2, b',');
        let cells = |at: usize| -> Vec<String> {
            found[at].1.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
        };
        assert_eq!((found[0].0, cells(0)), (2, vec!["2".into(), "5in screen".into(), "y".into()]));
        assert_eq!((found[1].0, cells(1)), (3, vec!["3".into(), "b".into(), "z".into()]));
    }
}
