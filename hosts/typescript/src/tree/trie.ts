import { compareCodePoints } from "./order.js";
import { iterableAt, objectAt, textAt, type TokenSequence, tokensAt } from "./payload.js";

/** The `tokenId` of the root, which no token enters. */
export const TRIE_ROOT_TOKEN_ID = -1;

/** A node of a token trie. It may be terminal and have children: `REPLY` is a prefix of `REPLY_THREAD`. */
export interface TokenTrieNode {
  /** The token that enters this node; `TRIE_ROOT_TOKEN_ID` at the root. */
  readonly tokenId: number;
  readonly children: ReadonlyMap<number, TokenTrieNode>;
  /** True if the tokens from the root to here are a whole leaf. */
  readonly isTerminal: boolean;
  /** The name of that leaf: the smallest, by code points, where several leaves have the same tokens. */
  readonly leafName?: string;
}

interface GrowingNode {
  tokenId: number;
  children: Map<number, GrowingNode>;
  isTerminal: boolean;
  leafName?: string;
}

function emptyNode(tokenId: number): GrowingNode {
  return { tokenId, children: new Map(), isTerminal: false };
}

/**
 * Builds the trie of some leaves. Leaves without tokens are skipped, equal ones become one, no leaves give a root
 * without children. The order of the leaves changes nothing: children ascend.
 *
 * Time and memory: O(number of tokens), and the time to sort the children of each node.
 *
 * @throws PayloadError for an id that is not an integer from 0 to 2^31 - 1.
 */
export function buildTokenTrie(sequences: Iterable<TokenSequence>): TokenTrieNode {
  const root = emptyNode(TRIE_ROOT_TOKEN_ID);
  let number = 0;
  for (const leaf of iterableAt(sequences, "leaves")) {
    const where = `leaves[${number++}]`;
    const { name: given, tokens: ids } = objectAt(leaf, where);
    // Checked before the trie grows: a bad leaf adds no nodes.
    const name = textAt(given, `${where}.name`);
    const tokens = tokensAt(ids, () => `leaf ${JSON.stringify(name)}, tokens`);
    if (tokens.length === 0) continue;
    let node = root;
    for (const token of tokens) {
      let next = node.children.get(token);
      if (next === undefined) {
        next = emptyNode(token);
        node.children.set(token, next);
      }
      node = next;
    }
    if (node.leafName === undefined || compareCodePoints(name, node.leafName) < 0) node.leafName = name;
    node.isTerminal = true;
  }
  for (const node of walk<GrowingNode>(root)) {
    if (node.children.size > 1) node.children = new Map([...node.children].sort(([a], [b]) => a - b));
  }
  return root;
}

/** The child that a token leads to, or null if the token is not allowed. O(1). */
export function step(node: TokenTrieNode, tokenId: number): TokenTrieNode | null {
  return node.children.get(tokenId) ?? null;
}

/** Returns whether a leaf is complete here and cannot go on. */
export function isUniqueContinuation(node: TokenTrieNode): boolean {
  return node.isTerminal && node.children.size === 0;
}

/** Returns the number of leaves that end at the node or below it. O(nodes). */
export function countTerminals(node: TokenTrieNode): number {
  let count = 0;
  for (const { isTerminal } of walk(node)) count += Number(isTerminal);
  return count;
}

/** Returns the number of nodes from this one on, itself included. O(nodes). */
export function countNodes(node: TokenTrieNode): number {
  let count = 0;
  for (const _ of walk(node)) count += 1;
  return count;
}

/**
 * The forced tokens from here: they go on while a node has exactly one child and no leaf ends there.
 * No forward pass is needed for them.
 */
export function forcedRun(node: TokenTrieNode): number[] {
  const run: number[] = [];
  let at = node;
  while (!at.isTerminal && at.children.size === 1) {
    const [child] = at.children.values();
    if (child === undefined) break;
    run.push(child.tokenId);
    at = child;
  }
  return run;
}

/** About how much memory the nodes take in JavaScript: 80 bytes each and 16 for each edge. O(nodes). */
export function estimateTrieBytes(node: TokenTrieNode): number {
  const nodes = countNodes(node);
  return 80 * nodes + 16 * (nodes - 1);
}

/** The leaves in the order of their tokens, which is the order in which Rust and Python number them. */
export function* trieLeaves(root: TokenTrieNode): Generator<TokenSequence> {
  const open: { node: TokenTrieNode; depth: number }[] = [{ node: root, depth: 0 }];
  const tokens: number[] = [];
  for (let top = open.pop(); top !== undefined; top = open.pop()) {
    const { node, depth } = top;
    if (depth > 0) {
      tokens.length = depth - 1;
      tokens.push(node.tokenId);
    }
    if (node.isTerminal) yield { name: node.leafName ?? "", tokens: [...tokens] };
    for (const child of [...node.children.values()].reverse()) open.push({ node: child, depth: depth + 1 });
  }
}

/** Every node, parents first; without recursion, since a leaf may have any number of tokens. */
function* walk<Node extends { children: ReadonlyMap<number, Node> }>(root: Node): Generator<Node> {
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node;
    for (const child of node.children.values()) open.push(child);
  }
}
