// The transparency log of the published test vectors: inclusion, growth and witnesses, and their twins.
import { toBase64 } from '#src/domain/encoding.ts';
import { checkpointText } from '#src/domain/transparency/checkpoint.ts';
import { type CosignerKey, cosign, SIGNATURE_TYPES, vkeyText } from '#src/domain/transparency/cosignature.ts';
import { parseNote, signNote, withSignatures } from '#src/domain/transparency/note.ts';
import { tlogProofText } from '#src/domain/transparency/tlog-proof.ts';
import { receiptLeafData } from '#src/domain/transparency/tree.ts';
import { MTH, PATH, PROOF } from '#test/support/witness/rfc6962.ts';
import { signed } from './given-receipt.ts';
import { sha256, type TestKey } from './primitives.ts';
import { LOG, PAYLOADS } from './vector-jobs.ts';
import { checkpointKey, current, fixedKey, type KeyedVector, keySet, twinsOf, valid } from './vector-keys.ts';

const bytesOf = ({ x }: TestKey) => new Uint8Array(Buffer.from(x, 'base64url'));
const leafOf = (label: string) => sha256(`leaf ${label}`);

const noteOf = (leaves: readonly Uint8Array[], key = checkpointKey, origin = LOG.origin) =>
  signNote(
    checkpointText({ origin, size: leaves.length, root: MTH(leaves) }),
    { name: origin, publicKey: bytesOf(key) },
    key.sign,
  );

const INDEX = 2;
const jws = await signed(PAYLOADS.free, current);
const leaves = ['0', '1', jws, '3', '4', '5', '6'].map((one) =>
  one === jws ? receiptLeafData(jws) : leafOf(one),
);
const path = PATH(INDEX, leaves);
const proofBy = (checkpoint: string) => tlogProofText({ index: INDEX, path, checkpoint });
const proof = proofBy(await noteOf(leaves));

export async function logVectors(): Promise<KeyedVector[]> {
  return [...(await inclusion()), ...(await consistency()), ...(await witnessed())];
}

async function inclusion(): Promise<KeyedVector[]> {
  const good = valid('inclusion', 'inclusion', 'The receipt is the third of seven leaves.', {
    jws,
    keys: keySet(),
    proof,
  });
  const other = { jws: await signed({ ...PAYLOADS.free, iat: PAYLOADS.free.iat + 1 }, current) };
  const refused = (
    name: string,
    why: string,
    problem: string,
    change: { readonly proof: string } | { readonly jws: string },
  ) => [name, why, change, ['receipt_logged'], problem] as const;
  return [
    good,
    ...twinsOf(good, [
      refused('another-receipt', 'The receipt is not the leaf.', 'inclusion', other),
      refused('another-index', 'The leaf is at another index.', 'inclusion', {
        proof: proof.replace('index 2', 'index 3'),
      }),
      refused('index-beyond', 'The index is not less than the size.', 'inclusion', {
        proof: proof.replace('index 2', 'index 7'),
      }),
      refused('hash-missing', 'The first hash of the path is missing.', 'inclusion', {
        proof: proof.replace(/(index 2\n)[^\n]+\n/, '$1'),
      }),
      refused('size-changed', 'The signature does not cover this size.', 'checkpoint', {
        proof: proof.replace('\n7\n', '\n8\n'),
      }),
      refused('receipt-key', 'A receipt key signed the checkpoint.', 'checkpoint', {
        proof: proofBy(await noteOf(leaves, current)),
      }),
      refused('another-log', 'The receipt names another log.', 'origin', {
        proof: proofBy(await noteOf(leaves, checkpointKey, 'other.example/receipts')),
      }),
      refused('another-format', 'The first line names another version.', 'malformed', {
        proof: proof.replace('@v1', '@v2'),
      }),
    ]),
  ];
}

async function consistency(): Promise<KeyedVector[]> {
  const answer = (from: number, to: number) => ({
    from,
    to,
    proof: PROOF(from, leaves.slice(0, to)).map(toBase64),
  });
  const [older, newer] = [await noteOf(leaves.slice(0, 3)), await noteOf(leaves)];
  const input = { older, newer, proof: answer(3, 7) as object | null, keys: keySet() };
  const good = valid('consistency', 'consistency', 'Seven leaves continue three.', input);
  const shrunk = { ...answer(3, 7), proof: answer(3, 7).proof.slice(1) };
  const forked = await noteOf(leaves.map((leaf, at) => (at === 0 ? leafOf('x') : leaf)));
  return [
    good,
    valid('consistency', 'consistency-same', 'Both checkpoints have one size and one root.', {
      ...input,
      older: newer,
      proof: null,
    }),
    ...twinsOf(good, [
      [
        'rewritten',
        'The newer log has another first leaf.',
        { newer: forked },
        ['new_continues_old'],
        'inconsistent',
      ],
      [
        'hash-missing',
        'A hash of the proof is missing.',
        { proof: shrunk },
        ['new_continues_old'],
        'inconsistent',
      ],
      [
        'no-proof',
        'The sizes differ, and there is no proof.',
        { proof: null },
        ['new_continues_old'],
        'missing',
      ],
      [
        'other-sizes',
        'The proof is between other sizes.',
        { proof: answer(2, 7) },
        ['new_continues_old'],
        'sizes',
      ],
      [
        'no-hashes',
        'The proof has texts that are no hashes.',
        { proof: { ...answer(3, 7), proof: ['x'] } },
        ['new_continues_old'],
        'malformed',
      ],
      [
        'swapped',
        'The newer checkpoint is smaller.',
        { older: newer, newer: older },
        ['new_continues_old'],
        'smaller',
      ],
      [
        'fork',
        'Two roots of one size: the log has two histories.',
        { older: newer, newer: forked },
        ['new_continues_old'],
        'fork',
      ],
      [
        'another-log',
        'The checkpoints are of two logs.',
        { newer: await noteOf(leaves, checkpointKey, 'other.example/receipts') },
        ['same_log'],
        'origin',
      ],
      [
        'older-unsigned',
        'No checkpoint key signed the older one.',
        { older: await noteOf(leaves.slice(0, 3), current) },
        ['old_checkpoint_signed'],
        'older',
      ],
      [
        'newer-compromised',
        'The checkpoint key is compromised.',
        { keys: compromised },
        ['old_checkpoint_signed', 'new_checkpoint_signed'],
        'older',
      ],
    ]),
  ];
}

const compromised = {
  keys: keySet().keys.map((key) =>
    key.purpose === 'checkpoint' ? { ...key, revokedAt: PAYLOADS.free.iat } : key,
  ),
};

const TIME = PAYLOADS.free.iat + 30;

async function witnessed(): Promise<KeyedVector[]> {
  const [one, two] = [fixedKey('witness one'), fixedKey('witness two')];
  const cosigner = (name: string, key: TestKey) =>
    ({ name, type: SIGNATURE_TYPES.cosignatureEd25519, publicKey: bytesOf(key) }) as CosignerKey;
  const [first, second] = [cosigner('one.example', one), cosigner('two.example', two)];
  const policy = [
    `witness one ${vkeyText(first)}`,
    `witness two ${vkeyText(second)}`,
    'group both all one two',
    'quorum both',
    '',
  ].join('\n');
  const checkpoint = await noteOf(leaves);
  const cosigned = async (...by: readonly (readonly [CosignerKey, TestKey])[]) => {
    const note = parseNote(checkpoint);
    if (note === null) throw new Error('the checkpoint is no note');
    const lines = await Promise.all(by.map(([key, { sign }]) => cosign(note, key, TIME, sign)));
    return { proof: proofBy(withSignatures(note, lines)) };
  };
  const input = { jws, keys: keySet(), policy, ...(await cosigned([first, one], [second, two])) };
  const good = valid('witnessed', 'witnessed', 'Both witnesses of the policy have cosigned.', input);
  return [
    good,
    ...twinsOf(good, [
      [
        'one-missing',
        'One of two witnesses has cosigned.',
        await cosigned([first, one]),
        ['receipt_witnessed'],
        'quorum',
      ],
      ['none', 'No witness has cosigned.', { proof }, ['receipt_witnessed'], 'quorum'],
      [
        'forged',
        'Another key signed under the name of the second.',
        await cosigned([first, one], [second, one]),
        ['receipt_witnessed'],
        'cosignature',
      ],
    ]),
  ];
}
