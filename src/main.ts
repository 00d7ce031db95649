import { endOnStopSignal, firstStopSignal, ignoreHangup, ignoreUserSignals } from './util/signals.js';

// The server process. It handles signals first, because loading everything else takes half a second.
endOnStopSignal(0);
ignoreHangup();
ignoreUserSignals();
const { runServer } = await import('./server-process.js');
await runServer(process.env, firstStopSignal());
