// The policy file of C2SP tlog-policy: which logs and witnesses are known, and which witnesses have to cosign a checkpoint (the
// quorum). A verifier, a log that asks witnesses and a witness read the same file.
import { fromUtf8, toHex, utf8 } from '#src/domain/encoding.ts';
import type { Primitives } from '../signing-keys/keys.ts';
import {
  type CosignerKey,
  isCosignerKey,
  judgeSignatures,
  keyIdText,
  parseVerifierKey,
  type VerifierKey,
} from './cosignature.ts';
import type { Note } from './note.ts';

/** `key.name` is the origin of the log. */
export type PolicyLog = { readonly key: VerifierKey; readonly url: string | null };

export type PolicyWitness = {
  /** Only within the policy; the signature lines of the witness have `key.name`. */
  readonly name: string;
  readonly key: CosignerKey;
  /** For a log that asks it: the submission prefix (C2SP tlog-witness). */
  readonly url: string | null;
  /** Of the file, from 1. */
  readonly line: number;
};

/** A witness, or a group of which at least `threshold` members have to cosign. */
export type Quorum =
  | { readonly kind: 'witness'; readonly name: string }
  | {
      readonly kind: 'group';
      readonly name: string;
      readonly threshold: number;
      readonly members: readonly Quorum[];
    };

export type WitnessPolicy = {
  readonly logs: readonly PolicyLog[];
  readonly witnesses: readonly PolicyWitness[];
  /** null: `quorum none`, no cosignature is required. */
  readonly quorum: Quorum | null;
};

/** `line`: from 1; null: the file as a whole. `reason` follows the line in a sentence. */
export type PolicyProblem = { readonly line: number | null; readonly reason: string };

export const policyProblemText = ({ line, reason }: PolicyProblem): string =>
  line === null ? reason : `line ${line}: ${reason}`;

export type ReadPolicy =
  | { readonly policy: WitnessPolicy; readonly problem: null }
  | { readonly policy: null; readonly problem: PolicyProblem };

type Draft = {
  readonly logs: PolicyLog[];
  readonly witnesses: PolicyWitness[];
  readonly names: Map<string, Quorum>;
  /** Names that are a member of a group. */
  readonly members: Set<string>;
  quorum: { readonly value: Quorum | null } | null;
};

/** The name that no line defines: `quorum none`. */
const NONE = 'none';

/**
 * Reads a policy file. `file`: its bytes; names are compared byte for byte, and a line that is not UTF-8 is refused unless it is
 * a comment. The first problem is returned.
 */
export function parseWitnessPolicy(file: string | Uint8Array): ReadPolicy {
  const { draft, problem } = readLines(file);
  if (problem !== null) return { policy: null, problem };
  const { logs, witnesses, quorum } = draft;
  if (quorum === null)
    return {
      policy: null,
      problem: { line: null, reason: 'there is no `quorum` line; `quorum none` is one' },
    };
  return { policy: { logs, witnesses, quorum: quorum.value }, problem: null };
}

/**
 * The logs of a policy file, which may have no quorum: what a witness is configured with. A log with several keys has several
 * lines, whose keys have the same name.
 */
export function parseWitnessLogs(
  file: string | Uint8Array,
):
  | { readonly logs: readonly PolicyLog[]; readonly problem: null }
  | { readonly logs: null; readonly problem: PolicyProblem } {
  const { draft, problem } = readLines(file);
  return problem === null ? { logs: draft.logs, problem } : { logs: null, problem };
}

function readLines(
  file: string | Uint8Array,
):
  | { readonly draft: Draft; readonly problem: null }
  | { readonly draft: null; readonly problem: PolicyProblem } {
  const draft: Draft = { logs: [], witnesses: [], names: new Map(), members: new Set(), quorum: null };
  for (const [index, bytes] of linesOf(typeof file === 'string' ? utf8(file) : file).entries()) {
    const reason = addLine(draft, bytes, index + 1);
    if (reason !== null) return { draft: null, problem: { line: index + 1, reason } };
  }
  return { draft, problem: null };
}

/** The lines without their ends; the last one may have none. */
function linesOf(bytes: Uint8Array): readonly Uint8Array[] {
  const lines: Uint8Array[] = [];
  let from = 0;
  while (from < bytes.length) {
    const found = bytes.indexOf(0x0a, from);
    const end = found < 0 ? bytes.length : found;
    lines.push(bytes.subarray(from, end));
    from = end + 1;
  }
  return lines;
}

/** Returns what is wrong with the line; null: nothing. */
function addLine(draft: Draft, bytes: Uint8Array, line: number): string | null {
  const control = bytes.find((byte) => (byte < 0x20 && byte !== 0x09) || byte === 0x7f);
  if (control !== undefined)
    return `it contains the control character 0x${toHex(Uint8Array.of(control))}; only tabs are accepted`;
  const first = bytes.find((byte) => byte !== 0x20 && byte !== 0x09);
  if (first === undefined || first === 0x23) return null;
  const text = fromUtf8(bytes);
  if (text === null) return 'it is not UTF-8';
  const [keyword = '', ...items] = text.split(/[ \t]+/).filter((item) => item !== '');
  switch (keyword) {
    case 'log':
      return addLog(draft, items);
    case 'witness':
      return addWitness(draft, items, line);
    case 'group':
      return addGroup(draft, items);
    case 'quorum':
      return setQuorum(draft, items);
    default:
      return `\`${keyword}\` is no keyword: log, witness, group or quorum`;
  }
}

function addLog({ logs }: Draft, [vkey, url, ...more]: readonly string[]): string | null {
  if (vkey === undefined || more.length > 0) return 'a log line is `log <vkey> [<url>]`';
  const key = parseVerifierKey(vkey);
  if (key === null) return BAD_KEY;
  if (logs.some((log) => isSameKey(log.key, key))) return 'this public key is the one of another log line';
  logs.push({ key, url: url ?? null });
  return null;
}

const BAD_KEY =
  'the key is no verifier key `<name>+<key id>+<base64>` of type 0x01 (Ed25519), 0x04 or 0x06 (cosignatures, Ed25519 and ML-DSA-44)';

function addWitness(
  draft: Draft,
  [name, vkey, url, ...more]: readonly string[],
  line: number,
): string | null {
  if (name === undefined || vkey === undefined || more.length > 0)
    return 'a witness line is `witness <name> <vkey> [<url>]`';
  const key = parseVerifierKey(vkey);
  if (key === null) return BAD_KEY;
  if (!isCosignerKey(key)) return 'the key is of type 0x01; a witness has a key of type 0x04 or 0x06';
  if (draft.witnesses.some((witness) => isSameKey(witness.key, key)))
    return 'this public key is the one of another witness line';
  const taken = define(draft, { kind: 'witness', name });
  if (taken === null) draft.witnesses.push({ name, key, url: url ?? null, line });
  return taken;
}

const isSameKey = (a: VerifierKey, b: VerifierKey): boolean => toHex(a.publicKey) === toHex(b.publicKey);

function define({ names }: Draft, quorum: Quorum): string | null {
  if (quorum.name === NONE) return `the name \`${NONE}\` is predefined`;
  if (names.has(quorum.name)) return `the name \`${quorum.name}\` is defined already`;
  names.set(quorum.name, quorum);
  return null;
}

function addGroup(draft: Draft, [name, rule, ...listed]: readonly string[]): string | null {
  if (name === undefined || rule === undefined || listed.length === 0)
    return 'a group line is `group <name> <k> <name>…` with `all` or `any` or a number for <k>';
  const threshold = thresholdOf(rule, listed.length);
  if (threshold === null)
    return `\`${rule}\` is neither \`all\` nor \`any\` nor a number from 1 to ${listed.length}`;
  const members: Quorum[] = [];
  for (const member of listed) {
    const found = draft.names.get(member);
    if (found === undefined) return undefinedName(member);
    if (draft.members.has(member)) return `\`${member}\` is a member of a group already`;
    draft.members.add(member);
    members.push(found);
  }
  return define(draft, { kind: 'group', name, threshold, members });
}

const undefinedName = (name: string): string =>
  `\`${name}\` is not the name of a witness or group of a line before`;

/** null: not a rule for so many members. */
function thresholdOf(rule: string, members: number): number | null {
  if (rule === 'all') return members;
  if (rule === 'any') return 1;
  const threshold = /^[1-9]\d{0,8}$/.test(rule) ? Number(rule) : 0;
  return threshold >= 1 && threshold <= members ? threshold : null;
}

function setQuorum(draft: Draft, [name, ...more]: readonly string[]): string | null {
  if (name === undefined || more.length > 0) return 'a quorum line is `quorum <name>` or `quorum none`';
  if (draft.quorum !== null) return 'there is another quorum line before';
  const value = name === NONE ? null : draft.names.get(name);
  if (value === undefined) return undefinedName(name);
  draft.quorum = { value };
  return null;
}

export type QuorumPolicy = Pick<WitnessPolicy, 'witnesses' | 'quorum'>;

export type QuorumVerdict = {
  /** Enough witnesses have cosigned. Always true for `quorum none`. */
  readonly met: boolean;
  /** The witnesses of the policy that have cosigned, in its order. */
  readonly signed: readonly string[];
  /** The witnesses of the quorum that have not, in the policy's order, whether or not it is met. */
  readonly missing: readonly string[];
};

/** `names`: the witnesses that have cosigned, as the policy names them. */
export function judgeQuorum({ witnesses, quorum }: QuorumPolicy, names: ReadonlySet<string>): QuorumVerdict {
  const needed = new Set(quorum === null ? [] : witnessesOf(quorum));
  const all = witnesses.map(({ name }) => name);
  return {
    met: quorum === null || hasQuorum(quorum, names),
    signed: all.filter((name) => names.has(name)),
    missing: all.filter((name) => needed.has(name) && !names.has(name)),
  };
}

const witnessesOf = (quorum: Quorum): readonly string[] =>
  quorum.kind === 'witness' ? [quorum.name] : quorum.members.flatMap(witnessesOf);

const hasQuorum = (quorum: Quorum, names: ReadonlySet<string>): boolean =>
  quorum.kind === 'witness'
    ? names.has(quorum.name)
    : quorum.members.filter((member) => hasQuorum(member, names)).length >= quorum.threshold;

export type PolicyCosignature = {
  /** As the policy names the witness. */
  readonly name: string;
  /** 8 digits of lower-case hex. */
  readonly keyId: string;
  /** Unix seconds, as the witness states it. */
  readonly time: number;
  /** The signature line, without its end. */
  readonly line: string;
};

export type PolicyCosignatures = {
  /** One for each witness that has cosigned: of several, the latest. In the policy's order. */
  readonly valid: readonly PolicyCosignature[];
  /** Witnesses with a signature that does not verify: C2SP signed-note recommends to reject such a note. */
  readonly invalid: readonly string[];
  /** Witnesses with an ML-DSA-44 signature that this runtime cannot verify. */
  readonly unsupported: readonly string[];
};

/** Verifies the cosignatures of the policy's witnesses on a checkpoint; signatures of other keys are ignored. */
export async function cosignaturesOf(
  note: Note,
  { witnesses }: Pick<WitnessPolicy, 'witnesses'>,
  primitives: Primitives,
): Promise<PolicyCosignatures> {
  const keys = witnesses.map(({ key }) => key);
  const verdicts = await judgeSignatures(note, keys, primitives);
  const valid: PolicyCosignature[] = [];
  const [invalid, unsupported]: [string[], string[]] = [[], []];
  for (const { name, key } of witnesses) {
    const own = verdicts.filter((verdict) => verdict.key === key);
    if (own.some(({ state }) => state === 'invalid')) invalid.push(name);
    if (own.some(({ state }) => state === 'unsupported')) unsupported.push(name);
    const signed = own.flatMap(({ state, time, line }) =>
      state === 'valid' && time !== null ? [{ name, keyId: keyIdText(key), time, line }] : [],
    );
    const latest = signed.sort((a, b) => b.time - a.time)[0];
    if (latest !== undefined) valid.push(latest);
  }
  return { valid, invalid, unsupported };
}
