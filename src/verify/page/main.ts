// The script of the pages: each page has one of these elements.
import { checkProofPage } from './proof.ts';
import { offerCopies, offerFilter } from './snippets.ts';
import { offerVerification } from './verify.ts';

const section = document.getElementById('own-check');
const form = document.getElementById('verify-form');
const filter = document.getElementById('filter');
offerCopies();
if (filter instanceof HTMLInputElement) offerFilter(filter);
if (section !== null) void checkProofPage(section);
if (form instanceof HTMLFormElement) offerVerification(form);
