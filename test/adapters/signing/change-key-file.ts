// Run as a process by key-file-update.test.ts: adds keys to a file, one by one, or holds the file's lock until it is killed.
import { updateKeyFile, withKeyFileLock } from '#src/adapters/signing/key-file.ts';

const [path = '', what = ''] = process.argv.slice(2);
if (what === 'hold') {
  withKeyFileLock(path, { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }, () => {
    console.log('held');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
}
for (let n = Number(what); n > 0; n--) updateKeyFile(path, () => ({ fresh: ['receipt'], retired: [] }));
