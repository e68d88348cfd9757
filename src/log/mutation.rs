//! What a mutant does instead; see [`crate::base::mutant`].

use std::sync::Arc;

use super::StoreId;
use super::appender::Appender;
use super::error::LogError;
use super::limits::SegmentSizes;
use super::segment::PreparedSegment;
use super::tail::Tail;
use crate::disk::{Disk, OpenMode};

/// Goes on behind the last good frame, in the file in which it lies. None if there is no file yet.
pub(super) fn append_in_place(
    disk: &Arc<dyn Disk>,
    store_id: StoreId,
    tail: &Tail,
    segments: SegmentSizes,
) -> Result<Option<Appender>, LogError> {
    let Some((name, offset)) = tail.end() else { return Ok(None) };
    let file = disk.open(&name.file(), OpenMode::ReadWrite).map_err(LogError::io(name.file()))?;
    // What was only read is made durable, as far as that goes in place.
    file.sync_data().map_err(LogError::io(name.file()))?;
    let bytes = file.len().map_err(LogError::io(name.file()))?;
    let segment = PreparedSegment { name, bytes, file };
    Ok(Some(Appender::new(Arc::clone(disk), store_id, segment, offset, tail.last, segments)))
}
