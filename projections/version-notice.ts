// What the operator is told of rows that another version of a read model has told.
import type { Logger } from '#src/ports/logger.ts';
import { isNewer, type VersionGap } from './versions.ts';

/** Says it once: the same state again, of a later session, says nothing new. */
export type VersionNotice = (gaps: readonly VersionGap[]) => void;

export function makeVersionNotice(logger: Logger): VersionNotice {
  let known = JSON.stringify([]);
  return (gaps) => {
    const state = JSON.stringify(gaps);
    if (state === known) return;
    known = state;
    const newer = gaps.filter(isNewer);
    const older = gaps.filter((gap) => !isNewer(gap));
    if (older.length > 0) {
      const command = `relay rebuild ${older.map(({ model }) => model).join(' ')}`;
      logger.warn(`rows of an older version of the read models: run \`${command}\``, { models: older });
    }
    if (newer.length > 0) {
      logger.warn(
        'rows of a newer version of the read models: this process leaves them to those who know it',
        {
          models: newer,
        },
      );
    }
  };
}
