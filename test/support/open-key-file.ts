// A process of its own for key-file.test.ts: opens the key file of its argument and tells what it found.

import { secretCheck } from '#src/adapters/signing/hash.ts';
import { openKeyFile } from '#src/adapters/signing/key-file.ts';

const { keys, hmacSecret } = openKeyFile({ path: process.argv[2] ?? '', create: true });
console.log(`${secretCheck(hmacSecret)} ${keys[0]?.keyId}`);
