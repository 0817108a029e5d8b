// Run as a process by key-file.test.ts: opens the key file of its argument and prints the result.

import { secretCheck } from '#src/adapters/signing/hash.ts';
import { openKeyFile } from '#src/adapters/signing/key-file.ts';

const { keys, hmacSecret } = openKeyFile({ path: process.argv[2] ?? '', create: true });
console.log(`${secretCheck(hmacSecret)} ${keys[0]?.keyId}`);
