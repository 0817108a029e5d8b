// An auditor with its scratch space: whose events it takes is the command's.
import { sqliteScratch } from '#src/adapters/audit/scratch-sqlite.ts';
import { ed25519VerifyInThreadPool } from '#src/adapters/signing/ed25519.ts';
import { type AuditDeps, type Auditor, makeAuditor } from '#src/usecases/audit/audit-log.ts';

export type OpenAuditor = Auditor & {
  /** Frees the scratch space; also where the audit is given up. */
  close(): void;
};

/** Throws where there is no room for temporary files. */
export function openAuditor(onFinding: AuditDeps['onFinding']): OpenAuditor {
  const scratch = sqliteScratch();
  const auditor = makeAuditor({
    primitives: { ed25519Verify: ed25519VerifyInThreadPool },
    scratch,
    onFinding,
  });
  return { ...auditor, close: () => scratch.close() };
}
