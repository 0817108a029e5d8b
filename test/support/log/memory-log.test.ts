import { eventLogContract } from '#test/support/contract/event-log.contract.ts';
import { memoryLog } from './memory-log.ts';

eventLogContract('memory', {
  spoils: true,
  together: true,
  async open() {
    const log = memoryLog();
    return {
      log,
      again: async () => log.again(),
      spoil: async (event) => log.spoil(event),
      dispose: async () => undefined,
    };
  },
});
