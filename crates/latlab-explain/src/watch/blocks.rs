//! A file of which small pieces are read here and there: whoever reads the names of a program's functions one
//! by one asks for some hundred thousand.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

/// Read at once, and kept.
const BLOCK: usize = 64 << 10;
/// Blocks kept: 32 MiB.
const MOST_KEPT: usize = 512;

/// See the module.
#[derive(Debug)]
pub(crate) struct Blocks {
    file: Rc<File>,
    at: u64,
    kept: HashMap<u64, Box<[u8]>>,
    /// How often the file itself was read.
    reads: u64,
}

impl Blocks {
    /// Stands at the beginning.
    pub(crate) fn of(file: Rc<File>) -> Self {
        Self { file, at: 0, kept: HashMap::new(), reads: 0 }
    }

    fn block(&mut self, number: u64) -> io::Result<&[u8]> {
        if !self.kept.contains_key(&number) {
            let mut bytes = vec![0_u8; BLOCK];
            let mut filled = 0;
            while filled < BLOCK {
                // The number is that of an offset over the size.
                let at = number * BLOCK as u64 + filled as u64;
                let got = self.file.read_at(&mut bytes[filled..], at)?;
                self.reads += 1;
                if got == 0 {
                    break;
                }
                filled += got;
            }
            bytes.truncate(filled);
            if self.kept.len() >= MOST_KEPT {
                self.kept.clear();
            }
            self.kept.insert(number, bytes.into_boxed_slice());
        }
        Ok(self.kept.get(&number).map_or(&[], |bytes| bytes))
    }
}

impl Read for Blocks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let at = self.at;
        let got = if into.len() >= BLOCK {
            self.reads += 1;
            self.file.read_at(into, at)?
        } else {
            let within = usize::try_from(at % BLOCK as u64).unwrap_or(0);
            let rest = self.block(at / BLOCK as u64)?.get(within..).unwrap_or(&[]);
            let got = rest.len().min(into.len());
            into[..got].copy_from_slice(&rest[..got]);
            got
        };
        self.at = at.saturating_add(got as u64);
        Ok(got)
    }
}

impl Seek for Blocks {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn numbers(name: &str) -> Blocks {
        let path = std::env::temp_dir().join(format!("latlab-blocks-{name}-{}", std::process::id()));
        let mut file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        for number in 0..40_000_u32 {
            file.write_all(&number.to_le_bytes()).unwrap();
        }
        Blocks::of(Rc::new(file))
    }

    #[test]
    fn small_pieces_all_over_a_file_are_a_few_reads() {
        let mut blocks = numbers("small");
        for turn in 0..40_000_u32 {
            let number = turn * 7919 % 40_000;
            let mut bytes = [0; 4];
            blocks.seek(SeekFrom::Start(4 * u64::from(number))).unwrap();
            blocks.read_exact(&mut bytes).unwrap();
            assert_eq!(u32::from_le_bytes(bytes), number);
        }
        assert!(blocks.reads <= 4, "{} of 160,000 bytes", blocks.reads);
    }

    #[test]
    fn what_lies_across_blocks_or_is_longer_than_one_is_read_whole() {
        let mut blocks = numbers("across");
        let mut bytes = vec![0; 5 * BLOCK / 4];
        for from in [BLOCK - 6, 2, 0] {
            for length in [bytes.len(), 12] {
                blocks.seek(SeekFrom::Start(from as u64)).unwrap();
                blocks.read_exact(&mut bytes[..length]).unwrap();
                let whole =
                    |at: usize| u32::try_from((from + at) / 4).unwrap().to_le_bytes()[(from + at) % 4];
                assert!((0..length).all(|at| bytes[at] == whole(at)), "{from} {length}");
            }
        }
        assert_eq!(blocks.seek(SeekFrom::End(-2)).unwrap(), 159_998);
        assert_eq!(blocks.read(&mut bytes[..9]).unwrap(), 2);
        assert_eq!(blocks.read(&mut bytes[..9]).unwrap(), 0);
        assert!(blocks.seek(SeekFrom::End(-200_000)).is_err());
    }
}
