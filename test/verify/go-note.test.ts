// Go's golang.org/x/mod/sumdb/note, as Go ships it, reads the notes that this relay writes: checkpoints, cosigned checkpoints of a
// witness, and verifier keys.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fromBase64url } from '#src/domain/encoding.ts';
import { cosign, isCosignerKey, parseVerifierKey } from '#src/domain/transparency/cosignature.ts';
import { parseNote, verifierKeyText, withSignatures } from '#src/domain/transparency/note.ts';
import { needsGo } from '#test/support/chain/requirements.ts';
import { sha256 } from '#test/support/given/primitives.ts';
import { ORIGIN, smallLog } from '#test/support/log/small-log.ts';
import { testFolder } from '#test/support/process/test-folder.ts';
import { c2spKey } from '#test/support/witness/c2sp.ts';

const go = needsGo();
const folder = testFolder('go-note');

/** Reads a note from standard input; its argument is the verifier key. Prints the text and the number of signatures. */
const PROGRAM = `package main

import (
	"fmt"
	"io"
	"os"

	"example/note"
)

func main() {
	verifier, err := note.NewVerifier(os.Args[1])
	if err != nil {
		fmt.Println("key:", err)
		return
	}
	signed, _ := io.ReadAll(os.Stdin)
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		fmt.Println("note:", err)
		return
	}
	fmt.Printf("%d %d %x %q", len(opened.Sigs), len(opened.UnverifiedSigs), verifier.KeyHash(), opened.Text)
}
`;

describe('the note package of Go', go, () => {
  const program = join(folder, 'open-note');
  before(() => {
    mkdirSync(join(folder, 'note'));
    // A module of its own cannot import what the go command vendors: the file is copied, with the standard library's Ed25519.
    const source = readFileSync(go.note, 'utf8').replace('"golang.org/x/crypto/ed25519"', '"crypto/ed25519"');
    writeFileSync(join(folder, 'note/note.go'), source);
    writeFileSync(join(folder, 'go.mod'), 'module example\n\ngo 1.19\n');
    writeFileSync(join(folder, 'main.go'), PROGRAM);
    const built = spawnSync('go', ['build', '-o', program, '.'], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        PATH: process.env.PATH ?? '',
        HOME: folder,
        GOCACHE: join(folder, 'cache'),
        GOFLAGS: '-mod=mod',
        GOPROXY: 'off',
        GOTOOLCHAIN: 'local',
      },
    });
    assert.equal(built.status, 0, built.stderr);
  });

  const log = smallLog();
  const vkey = verifierKeyText({ name: ORIGIN, publicKey: fromBase64url(log.key.x) ?? new Uint8Array() });
  const opened = (key: string, note: string): string => {
    const { stdout, status, stderr } = spawnSync(program, [key], { input: note, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return stdout;
  };

  test('opens a checkpoint with the verifier key that we publish', async () => {
    await log.append(sha256('a'));
    const note = await log.checkpoint();
    const id = vkey.split('+')[1]?.replace(/^0+/, '');
    assert.equal(opened(vkey, note), `1 0 ${id} ${JSON.stringify(parseNote(note)?.text)}`);
  });
  test('ignores the cosignatures on it, of both algorithms, as of unknown keys', async () => {
    const note = parseNote(await log.checkpoint()) ?? assert.fail();
    const lines = [];
    for (const type of [4, 6] as const) {
      const witness = c2spKey('w.example', type);
      const key = parseVerifierKey(witness.vkey);
      if (key === null || !isCosignerKey(key)) return assert.fail();
      lines.push(
        await cosign(note, key, 1_700_000_000, async (message) => witness.sign(Buffer.from(message))),
      );
    }
    assert.match(opened(vkey, withSignatures(note, lines)), /^1 2 /);
  });
  test('refuses a changed checkpoint, and a key of another name', async () => {
    const note = await log.checkpoint();
    assert.match(opened(vkey, note.replace('\n1\n', '\n2\n')), /^note: .*invalid signature/);
    const other = verifierKeyText({
      name: 'other.example',
      publicKey: fromBase64url(log.key.x) ?? new Uint8Array(),
    });
    assert.match(opened(other, note), /^note: .*no verifiable signatures/);
  });
  test('refuses what we refuse: a verifier key with another key id', () => {
    assert.match(opened(vkey.replace(/\+[0-9a-f]{8}\+/, '+00000000+'), ''), /^key: /);
  });
});
