// Ports that a test binds again, or needs closed. They are outside the range from which systems choose a port for
// `listen(0)` and for outgoing connections (32768 to 60999 on Linux, 49152 to 65535 elsewhere): whatever else runs on this
// machine does not take one while it is free.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const FIRST = 12_000;
const END = 32_000;

/** A free port of 127.0.0.1. */
export async function fixedPort(): Promise<number> {
  for (let left = 100; left > 0; left--) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port of ${FIRST} to ${END}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
