/**
 * RTKT, the binary form of one descriptor: smaller than JSON, without names.
 *
 * Little-endian: `RTKT`, version (u32), length of the path (u32), the path (UTF-8), number of nodes (u32), and the
 * nodes, parents first, each with its token (i32, -1 at the root), whether a leaf ends there (u8), the number of its
 * children (u32) and their numbers (u32 each).
 */
import { PayloadError } from "../errors.js";
import { MAX_TOKEN_ID, objectAt, describeValue, textAt, type TokenTreeDescriptor } from "./payload.js";
import { buildTokenTrie, type TokenTrieNode, TRIE_ROOT_TOKEN_ID } from "./trie.js";

const MAGIC = 0x544b5452; // "RTKT" as a little-endian number
const VERSION = 1;
const NODE_BYTES = 9;

/**
 * Writes a descriptor; equal sets give equal bytes.
 *
 * @throws PayloadError for an id that is not an integer from 0 to 2^31 - 1.
 */
export function encodeRtkt(descriptor: TokenTreeDescriptor): Uint8Array {
  const { path: given, leaves } = objectAt(descriptor, "descriptor") as unknown as TokenTreeDescriptor;
  const path = textAt(given, "descriptor.path");
  const nodes: { readonly node: TokenTrieNode; readonly children: number[] }[] = [];
  const open: { readonly node: TokenTrieNode; readonly siblings: number[] }[] = [
    { node: buildTokenTrie(leaves), siblings: [] },
  ];
  let edges = 0;
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    top.siblings.push(nodes.length);
    const children: number[] = [];
    nodes.push({ node: top.node, children });
    edges += top.node.children.size;
    for (const child of [...top.node.children.values()].reverse()) open.push({ node: child, siblings: children });
  }
  const name = new TextEncoder().encode(path);
  const view = new DataView(new ArrayBuffer(16 + name.length + NODE_BYTES * nodes.length + 4 * edges));
  let at = 0;
  const put = (value: number) => {
    view.setUint32(at, value, true);
    at += 4;
  };
  [MAGIC, VERSION, name.length].forEach(put);
  new Uint8Array(view.buffer).set(name, at);
  at += name.length;
  put(nodes.length);
  for (const { node, children } of nodes) {
    put(node.tokenId);
    view.setUint8(at++, Number(node.isTerminal));
    put(children.length);
    children.forEach(put);
  }
  return new Uint8Array(view.buffer);
}

interface ReadNode {
  readonly token: number;
  readonly isTerminal: boolean;
  readonly children: readonly number[];
}

/**
 * Reads what `encodeRtkt` writes: the path, and the sequences in the order of the nodes.
 *
 * Time: O(bytes), whatever counts the header claims; every count is checked against the bytes.
 *
 * @throws PayloadError that says what is wrong, and at which byte or node.
 */
export function decodeRtkt(bytes: Uint8Array): { path: string; sequences: number[][] } {
  if (!(bytes instanceof Uint8Array)) throw wrong(`a Uint8Array is needed, not ${describeValue(bytes)}`);
  const reader = new Reader(bytes);
  if (reader.u32("magic") !== MAGIC) throw wrong("bad magic: the bytes do not begin with RTKT");
  const version = reader.u32("version");
  if (version !== VERSION) throw wrong(`version ${version}: ${VERSION} is known`);
  const path = reader.text(reader.u32("length of the path"));
  const count = reader.u32("number of nodes");
  reader.need(count * NODE_BYTES, `${count} nodes`);
  const nodes = Array.from({ length: count }, (_, number) => readNode(reader, number, count));
  reader.end();
  return { path, sequences: [...sequencesOf(nodes)] };
}

function readNode(reader: Reader, number: number, count: number): ReadNode {
  const token = reader.u32("a token") | 0;
  const isTerminal = reader.u8("a flag") !== 0;
  if (number === 0 ? token !== TRIE_ROOT_TOKEN_ID : token < 0 || token > MAX_TOKEN_ID) {
    throw wrong(`node ${number}: invalid tokenId ${token}`);
  }
  const edges = reader.u32("a number of children");
  reader.need(edges * 4, `${edges} children of node ${number}`);
  const children = Array.from({ length: edges }, () => reader.u32("a child"));
  for (const child of children) {
    if (child <= number || child >= count) {
      throw wrong(`node ${number}: its child ${child} is none of the nodes ${number + 1} to ${count - 1}`);
    }
  }
  return { token, isTerminal, children };
}

/** Every node has one parent: a graph of 26 nodes can hold a million sequences. */
function* sequencesOf(nodes: readonly ReadNode[]): Generator<number[]> {
  const hasParent = new Uint8Array(nodes.length);
  nodes.forEach(({ children }, number) => {
    const tokens = new Set<number>();
    for (const child of children) {
      if (hasParent[child]) throw wrong(`node ${child} has multiple parents`);
      hasParent[child] = 1;
      const token = (nodes[child] as ReadNode).token;
      if (tokens.has(token)) throw wrong(`node ${number}: two children have the token ${token}`);
      tokens.add(token);
    }
  });
  const alone = hasParent.indexOf(0, 1);
  if (alone >= 0) throw wrong(`node ${alone} is not connected to root`);
  if (nodes.length === 0) throw wrong("missing root");

  const open = [{ number: 0, depth: 0 }];
  const tokens: number[] = [];
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const { token, isTerminal, children } = nodes[top.number] as ReadNode;
    if (top.depth > 0) {
      tokens.length = top.depth - 1;
      tokens.push(token);
      if (isTerminal) yield [...tokens];
    }
    for (const child of children.toReversed()) open.push({ number: child, depth: top.depth + 1 });
  }
}

class Reader {
  readonly #view: DataView;
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  need(length: number, what: string): void {
    const left = this.bytes.length - this.#at;
    if (length > left)
      throw wrong(`truncated at byte ${this.bytes.length}: ${what} need ${length} more, ${left} are left`);
  }

  u32(what: string): number {
    this.need(4, what);
    this.#at += 4;
    return this.#view.getUint32(this.#at - 4, true);
  }

  u8(what: string): number {
    this.need(1, what);
    return this.#view.getUint8(this.#at++);
  }

  text(length: number): string {
    this.need(length, "the path");
    this.#at += length;
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(this.bytes.subarray(this.#at - length, this.#at));
    } catch {
      throw wrong("the path is not UTF-8");
    }
  }

  end(): void {
    const left = this.bytes.length - this.#at;
    if (left > 0) throw wrong(`${left} bytes follow the last node`);
  }
}

function wrong(what: string): PayloadError {
  return new PayloadError(`RTKT: ${what}`);
}
