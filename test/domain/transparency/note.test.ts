// Signed notes and checkpoints: the published vectors of Go's note package, and everything that a reader must refuse.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fromBase64, fromBase64url, toBase64 } from '#src/domain/encoding.ts';
import type { KeyRecord } from '#src/domain/signing-keys/keys.ts';
import {
  checkpointText,
  originOf,
  parseCheckpoint,
  verifySignedCheckpoint,
} from '#src/domain/transparency/checkpoint.ts';
import {
  type NoteKey,
  parseNote,
  signNote,
  verifierKeyText,
  verifyNote,
} from '#src/domain/transparency/note.ts';
import { primitives, sha256, type TestKey, testKey } from '#test/support/given/primitives.ts';
import { ORIGIN, smallLog } from '#test/support/log/small-log.ts';

/** From the documentation of golang.org/x/mod/sumdb/note. */
const VKEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const NOTE =
  "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n" +
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';
/** The key of Go's checksum database, for its key id. */
const GO_SUM = 'sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8';

function keyOf(vkey: string): NoteKey {
  const [name = '', , base64 = ''] = vkey.split(/\+(.{8})\+/);
  return { name, publicKey: fromBase64(base64)?.slice(1) ?? assert.fail() };
}
const noteOf = (text: string) => parseNote(text) ?? assert.fail('no note');
const ours = (key: TestKey): NoteKey => ({ name: ORIGIN, publicKey: fromBase64url(key.x) ?? assert.fail() });

describe('the vectors of Go', () => {
  test('verifier keys are written as there: name, key id, type and key', async () => {
    for (const vkey of [VKEY, GO_SUM]) assert.equal(verifierKeyText(keyOf(vkey)), vkey);
  });
  test('the signed note verifies by its key', async () => {
    const key = keyOf(VKEY);
    assert.equal(await verifyNote(noteOf(NOTE), [keyOf(GO_SUM), key], primitives), key);
  });
  test('not after a letter was changed', async () => {
    assert.equal(await verifyNote(noteOf(NOTE.replace('answer', 'answar')), [keyOf(VKEY)], primitives), null);
  });
});

const own = testKey();
const ownNote = await signNote('one\n\ntwo\n', ours(own), own.sign);
const log = smallLog();
for (const leaf of ['a', 'b', 'c']) await log.append(sha256(leaf));
const head = await log.checkpoint();

describe('a note of ours', () => {
  const [key, note] = [own, ownNote];

  test('has its text, an empty line and the signature', () => {
    assert.match(note, /^one\n\ntwo\n\n— relay\.example\/receipts [A-Za-z0-9+/]{90,}={0,2}\n$/);
    assert.equal(noteOf(note).text, 'one\n\ntwo\n');
  });
  test('verifies beside signatures of unknown keys', async () => {
    const stranger = testKey();
    const more = (await signNote('one\n\ntwo\n', ours(stranger), stranger.sign)).split('\n').at(-2);
    for (const text of [`${note}${more}\n`, note.replace('\n\n—', `\n\n${more}\n—`)])
      assert.deepEqual(await verifyNote(noteOf(text), [ours(key)], primitives), ours(key));
  });
  test('verifies beside sixteen signatures of a post-quantum size by unknown algorithms', async () => {
    const large = (n: number) => `— relay.example/receipts ${toBase64(new Uint8Array(4 + 4627).fill(n))}\n`;
    const sixteen = Array.from({ length: 16 }, (_, n) => large(n)).join('');
    for (const text of [note + sixteen, note.replace('\n\n—', `\n\n${sixteen}—`)]) {
      assert.equal(noteOf(text).signatures.length, 17);
      assert.deepEqual(await verifyNote(noteOf(text), [ours(key)], primitives), ours(key));
    }
  });
  test('a bad signature by a known key refuses the whole note', async () => {
    const other = testKey();
    const bad = (await signNote('three\n', ours(other), other.sign)).split('\n').at(-2);
    assert.equal(await verifyNote(noteOf(`${note}${bad}\n`), [ours(key), ours(other)], primitives), null);
  });
  test('a known key under another name is not known', async () => {
    const named = { ...ours(key), name: 'other.example/receipts' };
    assert.equal(await verifyNote(noteOf(note), [named], primitives), null);
    assert.equal(await verifyNote(noteOf(note), [], primitives), null);
  });
  const notNotes: Readonly<Record<string, string>> = {
    'without a signature': 'one\n\ntwo\n',
    'without an empty line': note.replaceAll('\n\n', '\n'),
    'without its last line end': note.slice(0, -1),
    'with a carriage return': note.replace('one', 'one\r'),
    'with a tab': note.replace('one', 'o\tne'),
    'with a hyphen for the dash': note.replace('—', '-'),
    'with a plus in the name': note.replace('relay.', 'relay+'),
    'with base64url in the signature': note.replace(/[+/]|=+\n$/g, '_'),
    'with a signature of four bytes': 'a\n\n— x AAAAAA==\n',
    'of a megabyte': `${'x'.repeat(1_000_000)}\n${note}`,
    empty: '',
  };
  for (const [title, text] of Object.entries(notNotes))
    test(`no note: ${title}`, () => assert.equal(parseNote(text), null));
});

describe('a checkpoint', () => {
  const note = head;
  const read = (text: string, ...keys: readonly KeyRecord[]) =>
    verifySignedCheckpoint(text, keys, primitives);

  test('is origin, size and root, signed under the name of its origin', async () => {
    const root = await log.root();
    assert.ok(note.startsWith(`${ORIGIN}\n3\n${toBase64(root)}\n\n— ${ORIGIN} `));
    assert.deepEqual(await read(note, log.key.record), {
      origin: ORIGIN,
      size: 3,
      root,
      keyId: log.key.keyId,
    });
  });
  test('is valid by a retired key, because a note has no time, and never by a compromised key', async () => {
    assert.ok(await read(note, { ...log.key.record, notAfter: 1 }));
    assert.equal(await read(note, { ...log.key.record, compromisedAt: 4_000_000_000 }), null);
  });
  test('not by a key for receipts, nor by a stranger’s', async () => {
    assert.equal(await read(note, { ...log.key.record, purpose: 'receipt' }), null);
    assert.equal(await read(note, testKey({ purpose: 'checkpoint' }).record), null);
  });
  test('not under another origin', async () => {
    assert.equal(await read(note.replace(ORIGIN, 'other.example/x'), log.key.record), null);
  });
  test('its origin is the host with its port', () => {
    assert.equal(originOf('relay.example:8443'), 'relay.example:8443/receipts');
  });

  const { key } = log;
  const signed = (text: string) => signNote(text, ours(key), key.sign);
  const root = toBase64(sha256('x'));
  const texts: Readonly<Record<string, string>> = {
    'a size with a zero in front': `${ORIGIN}\n03\n${root}\n`,
    'a size below zero': `${ORIGIN}\n-3\n${root}\n`,
    'a size that no double holds': `${ORIGIN}\n9007199254740993\n${root}\n`,
    'a root of 31 bytes': `${ORIGIN}\n3\n${toBase64(sha256('x').slice(1))}\n`,
    'a root that is no base64': `${ORIGIN}\n3\nroot\n`,
    'no origin': `\n3\n${root}\n`,
    'two lines': `${ORIGIN}\n3\n`,
    'an empty line among its extensions': `${ORIGIN}\n3\n${root}\nmore\n\nmore\n`,
  };
  for (const [title, text] of Object.entries(texts)) {
    test(`is none with ${title}, however well it is signed`, async () => {
      assert.equal(parseCheckpoint(await signed(text)), null);
      assert.equal(await read(await signed(text), key.record), null);
    });
  }
  test('may have extension lines', async () => {
    const text = `${checkpointText({ origin: ORIGIN, size: 0, root: sha256('') })}more\n`;
    assert.equal((await read(await signed(text), key.record))?.size, 0);
  });
});
