// The service with another clock, or with a defect, for states that no configuration can make. Started in place of
// `src/main.ts`:
//   TEST_CLOCK_AHEAD   a file with the ms that its wall clock is ahead, read again and again
//   TEST_DEFECTS       a folder; the part whose name is a file there throws a TypeError when it is used
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

await import('#src/main.ts');
