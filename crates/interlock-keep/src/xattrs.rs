//! The attributes of the user's own namespace.

use std::os::fd::AsFd;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

/// Only these are kept: the others are the system's.
const PREFIX: &[u8] = b"user.";
/// What the kernel allows for all names, and for one value.
const LEN_MAX: usize = 1 << 16;

/// Attributes by name, in order.
pub(crate) type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// The attributes of an open file or directory.
pub(crate) fn read(file: impl AsFd) -> Result<Xattrs, Errno> {
    let mut few = [0_u8; 256];
    let names = match rustix::fs::flistxattr(&file, &mut few[..]) {
        Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(len) => few.get(..len).unwrap_or_default().to_vec(),
        Err(Errno::RANGE) => {
            let mut names = vec![0_u8; LEN_MAX];
            let len = rustix::fs::flistxattr(&file, &mut names[..])?;
            names.truncate(len);
            names
        }
        Err(why) => return Err(why),
    };
    let mut found = Xattrs::new();
    for name in names.split(|byte| *byte == 0).filter(|name| name.starts_with(PREFIX)) {
        let mut value = vec![0_u8; LEN_MAX];
        match rustix::fs::fgetxattr(&file, name, &mut value[..]) {
            Ok(len) => {
                value.truncate(len);
                found.push((name.to_vec(), value));
            }
            // Somebody took it away.
            Err(Errno::NODATA) => {}
            Err(why) => return Err(why),
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Gives an open file or directory these attributes and no others.
pub(crate) fn write(file: impl AsFd, wanted: &Xattrs) -> Result<(), Errno> {
    let present = read(&file)?;
    for (name, _) in present.iter().filter(|(name, _)| !wanted.iter().any(|(other, _)| other == name)) {
        rustix::fs::fremovexattr(&file, name.as_slice())?;
    }
    for (name, value) in wanted.iter().filter(|pair| !present.contains(pair)) {
        rustix::fs::fsetxattr(&file, name.as_slice(), value, XattrFlags::empty())?;
    }
    Ok(())
}
