import { endOnStopSignal, firstStopSignal, ignoreHangup, ignoreUserSignals } from './util/signals.js';

// The server process. Handles signals before it loads everything else, which takes half a second.
endOnStopSignal(0);
ignoreHangup();
ignoreUserSignals();
const { runServer } = await import('./server-process.js');
await runServer(process.env, firstStopSignal());
