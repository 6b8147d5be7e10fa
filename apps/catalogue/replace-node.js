// Replaces `settings` as the documentation of write-file-atomic shows it. The argument is the option fsync, whose
// default is true.
const writeFileAtomic = require('write-file-atomic')

writeFileAtomic('settings', 'the new content\n', { fsync: process.argv[2] === 'true' }).then(() => console.log('replaced'))
