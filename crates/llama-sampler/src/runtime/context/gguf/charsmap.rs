//! The table by which Unigram tokenizers rewrite a text (`precompiled_charsmap`): how long its first part is, a double
//! array, and the replacements, each with a zero at its end. llama.cpp trusts the length, and throws where the array
//! leads out of itself or of the replacements.

/// # Errors
/// The defect of the table.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    if bytes.is_empty() {
        return Ok(());
    }
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return Err("it ends inside the length of its first part".to_owned());
    };
    let length = u32::from_le_bytes(*length) as usize;
    let Some((array, replacements)) = rest.split_at_checked(length) else {
        return Err(format!("its first part has {length} bytes, and {} are there", rest.len()));
    };
    let nodes: Vec<u32> = array.as_chunks().0.iter().map(|&node| u32::from_le_bytes(node)).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    // From each node that can be reached, all bytes must lead to nodes.
    let mut seen = vec![false; nodes.len()];
    let mut waiting = vec![base(nodes[0])];
    while let Some(from) = waiting.pop() {
        for byte in 1..=255 {
            let index = from ^ byte;
            let Some(&node) = nodes.get(index) else {
                return Err(format!("a byte leads to node {index} of {}", nodes.len()));
            };
            if node & (1 << 31 | 0xff) != byte as u32 || std::mem::replace(&mut seen[index], true) {
                continue;
            }
            let next = index ^ base(node);
            if node >> 8 & 1 == 1 {
                let Some(&leaf) = nodes.get(next) else {
                    return Err(format!("a leaf leads to node {next} of {}", nodes.len()));
                };
                let at = (leaf & (u32::MAX >> 1)) as usize;
                if !replacements.get(at..).is_some_and(|text| text.contains(&0)) {
                    return Err(format!("the replacement at {at} of {} bytes does not end", replacements.len()));
                }
            }
            waiting.push(next);
        }
    }
    Ok(())
}

fn base(node: u32) -> usize {
    ((node >> 10) << ((node & 1 << 9) >> 6)) as usize
}

#[cfg(test)]
mod tests {
    use super::check;

    fn table(nodes: &[u32], replacements: &[u8]) -> Vec<u8> {
        let array: Vec<u8> = nodes.iter().flat_map(|node| node.to_le_bytes()).collect();
        [&(array.len() as u32).to_le_bytes()[..], &array, replacements].concat()
    }

    /// 256 nodes in which the byte `a` is a leaf: its value is in node 0 xor `a` xor the base of `a`, 1.
    fn sound(value: u32) -> Vec<u32> {
        let mut nodes = vec![0x100 << 9; 256];
        nodes[0] = 0;
        nodes[0x61] = 1 << 10 | 1 << 8 | 0x61;
        nodes[0x60] = 1 << 31 | value;
        nodes
    }

    #[test]
    fn tables() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&table(&[], b"")), Ok(()));
        assert_eq!(check(&table(&sound(1), b"x\0")), Ok(()));
        let wrong = |bytes: &[u8]| check(bytes).unwrap_err();
        assert!(wrong(&[1, 0]).contains("inside the length"));
        assert!(wrong(&[8, 0, 0, 0, 1]).contains("has 8 bytes, and 1 are there"));
        assert!(wrong(&table(&sound(1)[..200], b"x\0")).contains("a byte leads to node 200 of 200"));
        assert!(wrong(&table(&sound(2), b"x\0")).contains("the replacement at 2 of 2 bytes does not end"));
        assert!(wrong(&table(&sound(0), b"x")).contains("the replacement at 0 of 1 bytes does not end"));
        let mut outside = sound(0);
        outside[0x61] = 0x1000 << 10 | 1 << 8 | 0x61;
        assert!(wrong(&table(&outside, b"x\0")).contains("a leaf leads to node"));
    }
}
