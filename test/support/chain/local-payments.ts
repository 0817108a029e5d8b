// The local chain and facilitator for tests: whether this machine has them, payers with coins, and stock clients.
import { anvilPath } from '#src/demo/payments/anvil-process.ts';
import { requirement } from './requirements.ts';

/** For tests that need a chain. Call it at the top of the file. */
export const needsAnvil = () =>
  requirement(
    'anvil',
    anvilPath() !== null,
    `@foundry-rs/anvil has no binary for ${process.platform} ${process.arch}`,
  );
