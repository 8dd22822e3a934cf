//! The `WriteRequest` of remote-write 1.0, read from protobuf where it lies.
//!
//! `WriteRequest { repeated TimeSeries timeseries = 1; }`,
//! `TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }`,
//! `Label { string name = 1; string value = 2; }`, `Sample { double value = 1; int64 timestamp = 2; }`.
//! Fields with other numbers (metadata, exemplars, histograms) are passed over.

use super::RemoteWriteError;

/// Labels of one series, at most.
const LABELS_MAX: usize = 512;

/// One series with its values.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TimeSeries<'b> {
    /// The metric.
    pub(super) name: &'b str,
    /// The other labels.
    pub(super) labels: Vec<(&'b str, &'b str)>,
    /// Metric and labels in one.
    pub(super) identity: String,
    pub(super) samples: Vec<Sample>,
}

/// One value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    /// Milliseconds since 1970, as it was sent.
    pub(super) at_ms: i64,
}

/// A part of the body that is a message of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'b> {
    body: &'b [u8],
    at: usize,
    end: usize,
}

/// What a field holds.
#[derive(Debug)]
enum Field<'b> {
    Varint(u64),
    Fixed64(u64),
    Part(Message<'b>),
    Fixed32,
}

impl<'b> Message<'b> {
    /// Every series of a request.
    pub(super) fn series_of(body: &'b [u8]) -> Result<Vec<TimeSeries<'b>>, RemoteWriteError> {
        let mut request = Self { body, at: 0, end: body.len() };
        let mut series = Vec::new();
        while let Some((number, field)) = request.field()? {
            if let (1, Field::Part(part)) = (number, field) {
                series.push(part.series()?);
            }
        }
        Ok(series)
    }

    fn series(mut self) -> Result<TimeSeries<'b>, RemoteWriteError> {
        let mut series = TimeSeries::default();
        while let Some((number, field)) = self.field()? {
            match (number, field) {
                (1, Field::Part(part)) => {
                    let (name, value) = part.label()?;
                    if series.labels.len() >= LABELS_MAX {
                        return Err(self.error("are more than 512 labels of a series"));
                    }
                    series.identity.extend([name, "=", value, "\u{1f}"]);
                    match name {
                        "__name__" => series.name = value,
                        _ => series.labels.push((name, value)),
                    }
                }
                (2, Field::Part(part)) => series.samples.push(part.sample()?),
                _ => {}
            }
        }
        if series.name.is_empty() {
            return Err(self.error("ends a series without `__name__`"));
        }
        Ok(series)
    }

    fn label(mut self) -> Result<(&'b str, &'b str), RemoteWriteError> {
        let (mut name, mut value) = ("", "");
        while let Some((number, field)) = self.field()? {
            match (number, field) {
                (1, Field::Part(part)) => name = part.text()?,
                (2, Field::Part(part)) => value = part.text()?,
                _ => {}
            }
        }
        match name {
            "" => Err(self.error("ends a label without a name")),
            name => Ok((name, value)),
        }
    }

    fn sample(mut self) -> Result<Sample, RemoteWriteError> {
        let mut sample = Sample::default();
        while let Some((number, field)) = self.field()? {
            match (number, field) {
                (1, Field::Fixed64(bits)) => sample.value = f64::from_bits(bits),
                (2, Field::Varint(bits)) => sample.at_ms = bits.cast_signed(),
                _ => {}
            }
        }
        Ok(sample)
    }

    fn text(self) -> Result<&'b str, RemoteWriteError> {
        let bytes = &self.body[self.at..self.end];
        std::str::from_utf8(bytes).map_err(|_| self.error("is text that is no UTF-8"))
    }

    /// The next field: its number and what it holds.
    fn field(&mut self) -> Result<Option<(u64, Field<'b>)>, RemoteWriteError> {
        if self.at == self.end {
            return Ok(None);
        }
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(self.fixed64()?),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                let at = self.skip(length)?;
                Field::Part(Self { body: self.body, at, end: self.at })
            }
            5 => {
                self.skip(4)?;
                Field::Fixed32
            }
            _ => return Err(self.error("begins a field of no kind")),
        };
        if key >> 3 == 0 {
            return Err(self.error("ends a field with the number 0"));
        }
        Ok(Some((key >> 3, field)))
    }

    fn varint(&mut self) -> Result<u64, RemoteWriteError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let at = self.skip(1)?;
            let byte = self.body[at];
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error("ends a number of more than 64 bits"))
    }

    fn fixed64(&mut self) -> Result<u64, RemoteWriteError> {
        let at = self.skip(8)?;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.body[at..at + 8]);
        Ok(u64::from_le_bytes(bytes))
    }

    /// Goes on by `length` bytes; where they begin.
    fn skip(&mut self, length: usize) -> Result<usize, RemoteWriteError> {
        let at = self.at;
        if length > self.end - at {
            return Err(self.error("begins something that goes past its end"));
        }
        self.at += length;
        Ok(at)
    }

    fn error(&self, reason: &'static str) -> RemoteWriteError {
        RemoteWriteError::Message { at: self.at, reason }
    }
}
