// The service with another clock, with other times, or with a defect, for states that no configuration can make. Started in
// place of `src/main.ts`:
//   TEST_CLOCK_AHEAD    a file with the ms that its wall clock is ahead, read again and again
//   TEST_DEFECTS        a folder; the part whose name is a file there throws a TypeError when it is used
//   TEST_SCRUB_MS       how often all stored events are read to find damage
//   TEST_STANDSTILL_MS  after which time without a further block the comparison with the chain stands still
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const clockFile = process.env.TEST_CLOCK_AHEAD;
if (clockFile !== undefined) {
  const RealDate = Date;
  let aheadMs = 0;
  const look = () => {
    aheadMs = Number(readFileSync(clockFile, 'utf8'));
  };
  look();
  setInterval(look, 100);
  globalThis.Date = class extends RealDate {
    constructor(...given: readonly unknown[]) {
      super(...((given.length === 0 ? [RealDate.now() + aheadMs] : given) as [number]));
    }
    static override now = () => RealDate.now() + aheadMs;
  } as DateConstructor;
}

const folder = process.env.TEST_DEFECTS;
if (folder !== undefined) {
  const [{ ResponseReader }, { Column }] = await Promise.all([
    import('#src/adapters/outbound/response-reader.ts'),
    import('drizzle-orm'),
  ]);
  spoil(ResponseReader.prototype, 'read', 'outbound');
  spoil(Column.prototype, 'mapFromDriverValue', 'query');
}

function spoil(prototype: object, method: string, part: string): void {
  const { value: original } = Object.getOwnPropertyDescriptor(prototype, method) ?? {};
  if (typeof original !== 'function') throw new Error(`no method ${method}`);
  Object.defineProperty(prototype, method, {
    value(this: unknown, ...given: readonly unknown[]) {
      if (existsSync(join(folder ?? '', part))) throw new TypeError(`a defect of ${part}`);
      return original.apply(this, given);
    },
  });
}

// After the clock and the defects.
const [{ runService }, { lastWords }, { readServiceConfig }] = await Promise.all([
  import('#src/app/service.ts'),
  import('#src/app/start-errors.ts'),
  import('#src/config.ts'),
]);
const asked = new AbortController();
process.once('SIGTERM', () => asked.abort());
const { TEST_SCRUB_MS, TEST_STANDSTILL_MS } = process.env;
try {
  await runService(readServiceConfig(), asked.signal, {
    ...(TEST_SCRUB_MS && { scrubEveryMs: Number(TEST_SCRUB_MS) }),
    ...(TEST_STANDSTILL_MS && { standstillMs: Number(TEST_STANDSTILL_MS) }),
  });
  process.exit(0);
} catch (error) {
  process.stderr.write(`${lastWords(error)}\n`);
  process.exit(2);
}
