/** Tokens of a text by the byte-pair merges of a `tokenizer.json`, so that values of a set get a model's tokens. */

const WORDS = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** The characters that stand for bytes in such files. */
function byteNames() {
  const isShown = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let others = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isShown(byte) ? byte : others++));
}

/** A function that makes tokens of a text; it knows no control tokens. */
export function tokenizerOf({ model }) {
  const names = byteNames();
  const ranks = new Map(model.merges.map((pair, rank) => [pair.join(" "), rank]));
  const rankOf = (parts, nth) => ranks.get(`${parts[nth]} ${parts[nth + 1]}`) ?? Infinity;

  function mergePairs(word) {
    const parts = Array.from(new TextEncoder().encode(word), (byte) => names[byte]);
    while (parts.length > 1) {
      let best = 0;
      for (let nth = 1; nth + 1 < parts.length; nth++) if (rankOf(parts, nth) < rankOf(parts, best)) best = nth;
      if (rankOf(parts, best) === Infinity) break;
      parts.splice(best, 2, parts[best] + parts[best + 1]);
    }
    return parts.map((part) => model.vocab[part]);
  }

  return (text) => (text.match(WORDS) ?? []).flatMap(mergePairs);
}
