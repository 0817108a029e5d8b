import { httpWitness } from '#src/adapters/witness/http.ts';
import { witnessContract } from '#test/support/contract/witness.contract.ts';

witnessContract({ name: 'HTTP', witness: httpWitness });
