//! The names of tools as a trie without nodes: a sorted list, where a state is a range of the list.

/// Sorted names, each with the place of its tool.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<(Box<[u8]>, u32)>,
}

/// The names that begin with the written text: a range of the list, and the number of written bytes. The default is the
/// state before the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct NamePrefix {
    from: u32,
    to: u32,
    bytes: u16,
}

impl Names {
    pub(crate) fn new<'n>(names: impl IntoIterator<Item = (&'n str, u32)>) -> Self {
        let mut names: Vec<_> = names.into_iter().map(|(name, tool)| (name.as_bytes().into(), tool)).collect();
        names.sort_unstable();
        Self { names }
    }

    /// The state after one more byte; `None` if no name continues with it.
    pub(crate) fn step(&self, at: NamePrefix, byte: u8) -> Option<NamePrefix> {
        let at = if at.bytes == 0 { NamePrefix { from: 0, to: self.names.len() as u32, bytes: 0 } } else { at };
        let depth = usize::from(at.bytes);
        let range = &self.names[at.from as usize..at.to as usize];
        // Names that end here come first and have no byte.
        let from = range.partition_point(|(name, _)| name.get(depth).is_none_or(|&b| b < byte));
        let to = from + range[from..].partition_point(|(name, _)| name.get(depth) == Some(&byte));
        let at = NamePrefix { from: at.from + from as u32, to: at.from + to as u32, bytes: at.bytes.checked_add(1)? };
        (at.from < at.to).then_some(at)
    }

    /// As [`Names::step`], of the name of this tool alone.
    pub(crate) fn step_of(&self, tool: u32, at: NamePrefix, byte: u8) -> Option<NamePrefix> {
        let (name, _) = self.names.iter().find(|(_, other)| *other == tool)?;
        (name.get(usize::from(at.bytes)) == Some(&byte)).then_some(NamePrefix { bytes: at.bytes + 1, ..at })
    }

    /// Returns whether the whole name of this tool was written.
    pub(crate) fn is_whole(&self, tool: u32, at: NamePrefix) -> bool {
        self.names.iter().any(|(name, other)| *other == tool && name.len() == usize::from(at.bytes))
    }

    /// The names that begin with the written text, each with the number of its written bytes; or the name of this tool
    /// alone.
    pub(crate) fn remaining_names(&self, tool: Option<u32>, at: NamePrefix) -> impl Iterator<Item = (&[u8], usize)> {
        let range =
            if at.bytes == 0 || tool.is_some() { 0..self.names.len() } else { at.from as usize..at.to as usize };
        let named = move |(_, other): &&(Box<[u8]>, u32)| tool.is_none_or(|tool| *other == tool);
        self.names[range].iter().filter(named).map(move |(name, _)| (&**name, usize::from(at.bytes).min(name.len())))
    }

    /// Returns the numbers of the tools.
    pub(crate) fn tools(&self) -> impl Iterator<Item = u32> + '_ {
        self.names.iter().map(|(_, tool)| *tool)
    }

    /// The tool whose name was written, if one was.
    pub(crate) fn tool(&self, at: NamePrefix) -> Option<u32> {
        let (name, tool) = self.names.get(at.from as usize)?;
        (at.from < at.to && name.len() == usize::from(at.bytes)).then_some(*tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_and_those_that_go_on() {
        let names = Names::new([("get", 0), ("get_time", 1), ("stop", 2)]);
        let walk = |text: &str| text.bytes().try_fold(NamePrefix::default(), |at, byte| names.step(at, byte));
        assert_eq!(walk("get").and_then(|at| names.tool(at)), Some(0));
        assert_eq!(walk("get_").map(|at| names.tool(at)), Some(None));
        assert_eq!(walk("get_time").and_then(|at| names.tool(at)), Some(1));
        assert_eq!(walk("got"), None);
        assert_eq!(walk("stops"), None);
    }
}
