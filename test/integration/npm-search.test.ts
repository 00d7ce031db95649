import { describeSearchCommand, npmLike } from '../support/search-command.js';

describeSearchCommand(npmLike('npm search', ['npm']));
