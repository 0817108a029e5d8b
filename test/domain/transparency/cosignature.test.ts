// Cosignatures: the examples of C2SP, both algorithms against code written only from the standard's text, and what is refused.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fromBase64, toHex } from '#src/domain/encoding.ts';
import { parseCheckpoint } from '#src/domain/transparency/checkpoint.ts';
import {
  type CosignerKey,
  cosign,
  isCosignerKey,
  judgeSignatures,
  keyIdText,
  parseVerifierKey,
  vkeyText,
} from '#src/domain/transparency/cosignature.ts';
import {
  parseNote,
  parseSignatureLines,
  signatureLine,
  verifyNote,
  withSignatures,
} from '#src/domain/transparency/note.ts';
import { mlDsa44Verify } from '#src/lib/ml-dsa.ts';
import { primitives as ed25519 } from '#test/support/given/primitives.ts';
import {
  type C2spKey,
  c2spCheckpointText,
  c2spCosignature,
  c2spKey,
  c2spNote,
  c2spRoot,
  c2spVerify,
} from '#test/support/witness/c2sp.ts';

const primitives = { ...ed25519, mlDsa44Verify };
const noteOf = (text: string) => parseNote(text) ?? assert.fail('no note');
const keyOf = (vkey: string) => parseVerifierKey(vkey) ?? assert.fail('no key');
const cosignerOf = ({ vkey }: C2spKey): CosignerKey => {
  const key = keyOf(vkey);
  return isCosignerKey(key) ? key : assert.fail('no cosigner');
};

describe('the examples of C2SP', () => {
  /** signed-note, section "Example". */
  const VKEY = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
  const NOTE =
    'This is an example message.\n\n' +
    '— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n';
  /** tlog-cosignature, the introduction. */
  const COSIGNED =
    'example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n' +
    '— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n' +
    '— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n';
  /** tlog-witness, the answer of add-checkpoint. */
  const ANSWER =
    '— witness.example/w1 CMp+6LWBU0anHGH5aNDTJkH/gj79sG+T6+iP2ThYN5krrDJbR1HDnucjL39QsZTSvVjyQLrdk3DXDqI5G2HgLatVs0pWh6Up69HVOw==\n' +
    '— witness.example/w1 I7rEps0pvK2UqkS2gSpVUDhrhVtQV9lgF6pRrWAvjJHjyWpW7VcE3SiOlVlbQNt64vWhO+DlkL0+UfzuOBMh9ChdMkP1vi/lCAsmlw==\n' +
    '— witness.example/w2 AWui8Sk55XjYLOijihBjhqEH6nS1ndDymE0a+6idX7pLcnoB+dhnz0854aLZgrrKbYKA7nC3HNJhm/kWl7oJlqU3rXXvpysAdyP3wQ==\n';

  test('the verifier key of signed-note is read, written, and verifies its note', async () => {
    const key = keyOf(VKEY);
    assert.equal(vkeyText(key), VKEY);
    assert.equal(keyIdText(key), '530d903a');
    assert.equal(await verifyNote(noteOf(NOTE), [key], primitives), key);
    const [verdict] = await judgeSignatures(noteOf(NOTE), [key], primitives);
    assert.deepEqual({ state: verdict?.state, time: verdict?.time }, { state: 'valid', time: null });
  });
  test('the cosigned checkpoint has its tree head, and the time of its cosignature where the standard puts it', () => {
    const { signatures } = noteOf(COSIGNED);
    assert.equal(parseCheckpoint(COSIGNED)?.size, 20852163);
    assert.deepEqual(
      signatures.map(({ name, signature }) => [name, signature.length]),
      [
        ['example.com/behind-the-sofa', 64],
        ['witness.example.com/w1', 72],
      ],
    );
    assert.equal(toHex(signatures[1]?.signature.slice(0, 8) ?? new Uint8Array()), '00000000641850cb');
    assert.equal(0x641850cb, 1679315147);
  });
  test('the lines of a witness’s answer are read and written back', () => {
    const lines = parseSignatureLines(ANSWER) ?? assert.fail();
    assert.deepEqual(lines.map(signatureLine).join('\n'), ANSWER.trimEnd());
    for (const none of ['', '\n', ANSWER.trimEnd(), ` ${ANSWER}`, `${ANSWER}\n`, 'OK\n', '{"ok":true}'])
      assert.equal(parseSignatureLines(none), null, none);
  });
});

const TIME = 1679315147;
const LEAVES = ['a', 'b', 'c'];
const ORIGIN = 'example.com/behind-the-sofa';
const text = c2spCheckpointText(ORIGIN, 3, c2spRoot(LEAVES));
const log = c2spKey(ORIGIN, 1);
const note = c2spNote(text, log);

for (const [title, type] of [
  ['Ed25519 (0x04)', 4],
  ['ML-DSA-44 (0x06)', 6],
] as const) {
  describe(`a cosignature by ${title}`, () => {
    const witness = c2spKey('witness.example.com/w1', type, Buffer.alloc(32, type));
    const key = cosignerOf(witness);
    const theirs = c2spCosignature(text, witness, TIME);
    const judge = async (whole: string, ...keys: readonly CosignerKey[]) =>
      (await judgeSignatures(noteOf(whole), keys, primitives)).map(({ state, time }) => ({ state, time }));

    test('the verifier key is the one that the standard derives', () => {
      assert.equal(vkeyText(key), witness.vkey);
      assert.equal(keyIdText(key), witness.id.toString('hex'));
    });
    test('written from the standard’s text, it verifies here', async () => {
      assert.deepEqual(await judge(note + theirs, key), [{ state: 'valid', time: TIME }]);
    });
    test('written here, it verifies by the standard’s text', async () => {
      const ours = await cosign({ text }, key, TIME, async (message) => witness.sign(Buffer.from(message)));
      assert.deepEqual(c2spVerify(text, signatureLine(ours), witness), { time: TIME });
      assert.equal(withSignatures(noteOf(note), [ours, ours]), `${note}${signatureLine(ours)}\n`);
    });
    test('of a checkpoint of another root, size or origin, it is invalid', async () => {
      for (const other of [
        c2spCheckpointText(ORIGIN, 3, c2spRoot(['a'])),
        c2spCheckpointText(ORIGIN, 4, c2spRoot(LEAVES)),
        c2spCheckpointText(`${ORIGIN}2`, 3, c2spRoot(LEAVES)),
      ])
        assert.deepEqual(await judge(c2spNote(other, log) + theirs, key), [{ state: 'invalid', time: TIME }]);
    });
    test('of another time, or with a changed byte, it is invalid', async () => {
      const bytes = fromBase64(theirs.trimEnd().split(' ')[2] ?? '') ?? assert.fail();
      for (const at of [4, 11, 12, bytes.length - 1]) {
        const changed = bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));
        const line = `— ${witness.name} ${Buffer.from(changed).toString('base64')}\n`;
        assert.equal((await judge(note + line, key))[0]?.state, 'invalid', `byte ${at}`);
      }
    });
    test('of another length, it is invalid', async () => {
      const bytes = Buffer.from(theirs.trimEnd().split(' ')[2] ?? '', 'base64');
      for (const other of [bytes.subarray(0, 10), bytes.subarray(0, -1), Buffer.concat([bytes, bytes])]) {
        const line = `— ${witness.name} ${other.toString('base64')}\n`;
        assert.deepEqual(await judge(note + line, key), [{ state: 'invalid', time: null }]);
      }
    });
    test('by an unknown key, or under another name or key id, it is ignored', async () => {
      assert.deepEqual(await judge(note + theirs), []);
      assert.deepEqual(await judge(note + theirs, { ...key, name: 'witness.example.com/w2' }), []);
      assert.deepEqual(await judge(note + theirs, cosignerOf(c2spKey(witness.name, type))), []);
    });
    test('as the only signature of a text that is no checkpoint, it is invalid', async () => {
      const whole = `some text\n\n${theirs}`;
      assert.deepEqual(await judge(whole, key), [{ state: 'invalid', time: TIME }]);
      await assert.rejects(
        cosign({ text: 'some text\n' }, key, TIME, async () => new Uint8Array(64)),
        RangeError,
      );
    });
  });
}

describe('the two algorithms', () => {
  const text2 = `${text}an extension line\n`;
  test('Ed25519 covers extension lines, ML-DSA-44 covers none', async () => {
    for (const [type, state] of [
      [4, 'invalid'],
      [6, 'valid'],
    ] as const) {
      const witness = c2spKey('w.example', type);
      const line = c2spCosignature(text, witness, TIME);
      const whole = noteOf(c2spNote(text2, log) + line);
      const [verdict] = await judgeSignatures(whole, [cosignerOf(witness)], primitives);
      assert.equal(verdict?.state, state);
    }
  });
  test('ML-DSA-44 covers the name of the cosigner, Ed25519 does not', async () => {
    for (const [type, state] of [
      [4, 'valid'],
      [6, 'invalid'],
    ] as const) {
      const seed = Buffer.alloc(32, 9);
      const [one, two] = [c2spKey('one.example', type, seed), c2spKey('two.example', type, seed)];
      const bytes = Buffer.from(c2spCosignature(text, one, TIME).trimEnd().split(' ')[2] ?? '', 'base64');
      const line = `— two.example ${Buffer.concat([two.id, bytes.subarray(4)]).toString('base64')}\n`;
      const [verdict] = await judgeSignatures(noteOf(note + line), [cosignerOf(two)], primitives);
      assert.equal(verdict?.state, state);
    }
  });
  test('without ML-DSA-44 in the runtime, its cosignature is neither valid nor invalid', async () => {
    const witness = c2spKey('w.example', 6);
    const whole = noteOf(note + c2spCosignature(text, witness, TIME));
    for (const none of [ed25519, { ...ed25519, mlDsa44Verify: async () => null }]) {
      const [verdict] = await judgeSignatures(whole, [cosignerOf(witness)], none);
      assert.equal(verdict?.state, 'unsupported');
    }
  });
  test('a time that no double represents is invalid', async () => {
    const witness = c2spKey('w.example', 4);
    const line = `— w.example ${Buffer.concat([witness.id, Buffer.alloc(72, 0xff)]).toString('base64')}\n`;
    const [verdict] = await judgeSignatures(noteOf(note + line), [cosignerOf(witness)], primitives);
    assert.deepEqual({ state: verdict?.state, time: verdict?.time }, { state: 'invalid', time: null });
  });
  test('a name or an origin over 255 bytes has no ML-DSA-44 cosignature', async () => {
    const witness = c2spKey('w'.repeat(256), 6);
    const line = `— ${witness.name} ${Buffer.concat([witness.id, Buffer.alloc(2428)]).toString('base64')}\n`;
    const [verdict] = await judgeSignatures(noteOf(note + line), [cosignerOf(witness)], primitives);
    assert.equal(verdict?.state, 'invalid');
    await assert.rejects(
      cosign({ text }, cosignerOf(witness), TIME, async () => new Uint8Array(2420)),
      RangeError,
    );
  });
});

describe('a verifier key is refused', () => {
  const { vkey, name } = c2spKey('w.example', 4);
  const [, id = '', base64 = ''] = vkey.split(/\+(.{8})\+/);
  const typed = (type: number, bytes: number) => {
    const key = Buffer.concat([Buffer.from([type]), Buffer.alloc(bytes, 7)]);
    return `${name}+00000000+${key.toString('base64')}`;
  };
  const others: Readonly<Record<string, string>> = {
    'without a name': vkey.slice(name.length),
    'with another key id': vkey.replace(id, '00000000'),
    'with an upper-case key id': vkey.replace(id, id.toUpperCase().replace(/^\d+$/, 'ABCDEF01')),
    'with a blank': ` ${vkey}`,
    'with an unpadded key': vkey.replace(base64, base64.slice(0, -1)),
    'without a key': `${name}+${id}+`,
    'of ECDSA': typed(2, 91),
    'of 31 bytes': typed(4, 31),
    'that is a text': 'key',
    empty: '',
  };
  for (const [title, other] of Object.entries(others))
    test(title, () => assert.equal(parseVerifierKey(other), null));
});
