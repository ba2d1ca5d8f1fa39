//! Compiled schemas of tools, kept for the lists of tools that have a tool in common.

use super::{Made, SchemaError, SchemaWarning};
use crate::shape::{Common, Engine, Goal, lock};
use crate::writable::Writable;
use lru::LruCache;
use std::fmt;
use std::sync::{Arc, Mutex};
use trie_core::work::over;

/// A compiled schema of a tool.
pub(crate) struct ToolSchema {
    pub(crate) engine: Engine,
    pub(crate) root: Arc<Goal>,
    pub(crate) warnings: Vec<SchemaWarning>,
}

/// Definition of a tool: the text of its schema, or the name of the set of its texts, and whether it must be held as a
/// whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ToolKey {
    Schema { text: Box<str>, sealed: bool },
    Texts { member: Box<str>, set: Box<str> },
}

impl ToolKey {
    fn nbytes(&self) -> usize {
        match self {
            Self::Schema { text, .. } => text.len(),
            Self::Texts { member, set } => member.len() + set.len(),
        }
    }
}

/// Compiled schemas of tools, by the tools' definitions: lists of tools that share tools share their compiled schemas.
/// A clone shares them, too.
///
/// It keeps the 1,024 that were used last, of at most 4 MiB of JSON text; lists in use keep theirs beyond that.
#[derive(Clone, Default)]
pub struct SchemaCache(Arc<Mutex<Vec<Arc<Group>>>>);

/// Schemas kept at most, and the bytes of their definitions.
const MOST_KEPT: usize = 1024;
const MOST_BYTES: usize = 4 << 20;
/// Formats with limits of their own on what can be written whose schemas are kept at most: a format has two, one for
/// its readers.
const MOST_GROUPS: usize = 4;

/// The schemas of tools whose values are written alike.
pub(crate) struct Group {
    writable: Option<Arc<Writable>>,
    kept: Mutex<KeptSchemas>,
}

/// The schemas of a group that were used last.
struct KeptSchemas {
    schemas: LruCache<ToolKey, Arc<ToolSchema>>,
    nbytes: usize,
    common: Arc<Common>,
}

impl Default for KeptSchemas {
    fn default() -> Self {
        Self { schemas: LruCache::unbounded(), nbytes: 0, common: Arc::default() }
    }
}

impl fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaCache").field("schemas", &self.len()).finish()
    }
}

impl SchemaCache {
    /// Returns the number of schemas that are kept.
    pub fn len(&self) -> usize {
        lock(&self.0).iter().map(|group| lock(&group.kept).schemas.len()).sum()
    }

    /// Returns whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all schemas; lists of tools keep theirs.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }

    pub(crate) fn group(&self, writable: Option<&Arc<Writable>>) -> Arc<Group> {
        let mut groups = lock(&self.0);
        if let Some(known) = groups.iter().find(|group| group.writable.as_ref() == writable) {
            return Arc::clone(known);
        }
        if groups.len() >= MOST_GROUPS {
            groups.remove(0);
        }
        let made = Arc::new(Group { writable: writable.cloned(), kept: Mutex::default() });
        groups.push(Arc::clone(&made));
        made
    }
}

impl Group {
    /// Returns what the schemas have in common. Where that holds as much as it can, later ones have another.
    pub(crate) fn common(&self) -> Arc<Common> {
        let mut kept = lock(&self.kept);
        if kept.common.is_full() {
            kept.common = Arc::default();
        }
        Arc::clone(&kept.common)
    }

    /// Returns the compiled schema of a definition, which `compile` makes if it is not kept.
    pub(crate) fn get_or_make(
        &self,
        key: ToolKey,
        compile: impl FnOnce(&Arc<Common>) -> Result<Made, SchemaError>,
    ) -> Result<Arc<ToolSchema>, SchemaError> {
        if let Some(known) = lock(&self.kept).schemas.get(&key) {
            return Ok(Arc::clone(known));
        }
        let made = compile(&self.common())?;
        let mut warnings = made.unheld;
        warnings.extend(made.notes);
        warnings.extend(made.dead.into_iter().map(|one| {
            let reason = format!("no value fits, so that an optional argument is left out: {}", one.reason);
            SchemaWarning { reason, ..one }
        }));
        let made = Arc::new(ToolSchema { engine: made.engine, root: made.root, warnings });
        // What was given up on request is not kept.
        if over().is_none() {
            let kept = &mut *lock(&self.kept);
            kept.nbytes += key.nbytes();
            if let Some((before, _)) = kept.schemas.push(key, Arc::clone(&made)) {
                kept.nbytes -= before.nbytes();
            }
            while kept.schemas.len() > MOST_KEPT || kept.nbytes > MOST_BYTES {
                let Some((oldest, _)) = kept.schemas.pop_lru() else { break };
                kept.nbytes -= oldest.nbytes();
            }
        }
        Ok(made)
    }
}
