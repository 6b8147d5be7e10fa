/* SQLite's shell with one of the expectations of the disk that SQLite can have (HotDep'13, section 4.1), by the name
** in $SQLITE_OPTION. SQLite calls use_option() when it starts (SQLITE_EXTRA_INIT). It asks its VFS what the disk of a
** file can do. Files are opened as ever, and then answer this question differently.
**
** recovery-not-synced is a bug that SQLite once had (section 4.2): recovery does not sync the database.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sqlite3.h"

static const struct Option {
  const char *name;
  int with;    /* added to what the VFS says of the disk (SQLITE_IOCAP_...) */
  int without; /* taken from it */
} options[] = {
  {"none", 0, 0},
  {"safe-append", SQLITE_IOCAP_SAFE_APPEND, 0},
  {"no-powersafe-overwrite", 0, SQLITE_IOCAP_POWERSAFE_OVERWRITE},
  {"atomic512", SQLITE_IOCAP_ATOMIC512, 0},
  {"atomic4k", SQLITE_IOCAP_ATOMIC4K, 0},
  {"atomic", SQLITE_IOCAP_ATOMIC, 0},
  {"sequential", SQLITE_IOCAP_SEQUENTIAL, 0},
  {"no-directory-sync", 0, 0},
  {"recovery-not-synced", 0, 0},
};

#define METHODS_MAX 16
static const struct Option *chosen;
static sqlite3_vfs *unix_vfs;
static sqlite3_vfs our_vfs;
static const sqlite3_io_methods *originals[METHODS_MAX];
static sqlite3_io_methods ours[METHODS_MAX];
static sqlite3_file *database;
static int recovers; /* A journal of an earlier process was opened, and none of our own since. */

static int characteristics(sqlite3_file *file) {
  int i = (int)(file->pMethods - ours);
  return (originals[i]->xDeviceCharacteristics(file) | chosen->with) & ~chosen->without;
}

static int sync_file(sqlite3_file *file, int flags) {
  int i = (int)(file->pMethods - ours);
  return file == database && recovers ? SQLITE_OK : originals[i]->xSync(file, flags);
}

/* Our version of a file's methods. There are a few: one for each way of locking. The shell has one thread. */
static const sqlite3_io_methods *changed(const sqlite3_io_methods *methods) {
  int i = 0;
  while (i < METHODS_MAX && originals[i] && originals[i] != methods) i++;
  if (i == METHODS_MAX) abort();
  originals[i] = methods;
  ours[i] = *methods;
  ours[i].xDeviceCharacteristics = characteristics;
  if (!strcmp(chosen->name, "recovery-not-synced")) ours[i].xSync = sync_file;
  return &ours[i];
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
  int result = unix_vfs->xOpen(unix_vfs, name, file, flags, out);
  if (file->pMethods) file->pMethods = changed(file->pMethods);
  if (flags & SQLITE_OPEN_MAIN_DB) database = file;
  if (flags & SQLITE_OPEN_MAIN_JOURNAL) recovers = !(flags & SQLITE_OPEN_CREATE);
  return result;
}

/* In place of the call by which SQLite opens a folder in order to sync it. It goes on without. */
static int open_no_folder(const char *path, int *folder) {
  *folder = -1;
  return SQLITE_CANTOPEN;
}

int use_option(const char *unused) {
  const char *name = getenv("SQLITE_OPTION");
  size_t i = 0;
  if (!name || !strcmp(name, "none")) return SQLITE_OK;
  while (i < sizeof options / sizeof *options && strcmp(options[i].name, name)) i++;
  if (i == sizeof options / sizeof *options) {
    fprintf(stderr, "no option is called %s\n", name);
    exit(2);
  }
  chosen = &options[i];
  unix_vfs = sqlite3_vfs_find(0);
  if (!strcmp(name, "no-directory-sync"))
    return unix_vfs->xSetSystemCall(unix_vfs, "openDirectory", (sqlite3_syscall_ptr)open_no_folder);
  our_vfs = *unix_vfs;
  our_vfs.pNext = 0;
  our_vfs.zName = "postcrash";
  our_vfs.xOpen = open_file;
  return sqlite3_vfs_register(&our_vfs, 1);
}
