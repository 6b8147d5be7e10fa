// LevelDB: a store with a few pairs (`set-up`), one of several workloads (`run`), the recovery after a crash (`recover`),
// and what must be there then (`check`). It is linked with the library of each version, or, with -DROCKSDB, with
// RocksDB, which has the same calls.
//
// LevelDB promises that a put with `sync` is durable when it has returned. Other puts may be lost, the last ones first:
// no put is there without all that came before it. The store opens after a crash. A repair promises less: it can be
// done again, and what it brings back was put there.

#include <stdio.h>
#include <stdlib.h>

#include <fstream>
#include <iostream>
#include <string>

#ifdef ROCKSDB
#include "rocksdb/db.h"
namespace leveldb = rocksdb;
#else
#include "leveldb/db.h"
#endif

namespace {

const int kPuts = 6;
const size_t kSmall = 100;
const size_t kLarge = 24 << 10;
const size_t kBuffer = 64 << 10;  // It is full after three large values.
const int kUsedOn = 100;

struct Workload {
  std::string name;
  bool creates() const { return name == "create"; }
  bool repairs() const { return name == "repair"; }
  size_t length() const { return name == "switch" || name == "compact" ? kLarge : kSmall; }
  // So many puts are durable when the run begins.
  int before() const { return creates() ? 0 : name == "compact" ? kPuts : 1; }
};

std::string ValueOf(int number, size_t length) {
  const std::string word = std::to_string(number) + " ";
  std::string value;
  while (value.size() < length) value += word;
  return value.substr(0, length);
}

// Keys are in the order of their numbers.
std::string KeyOf(int number) {
  const std::string digits = std::to_string(number);
  return std::string(3 - digits.size(), '0') + digits;
}

leveldb::Status Open(bool create, leveldb::DB** store) {
  leveldb::Options options;
  options.create_if_missing = create;
  options.write_buffer_size = kBuffer;
  options.compression = leveldb::kNoCompression;
#ifdef ROCKSDB
  options.db_log_dir = "/tmp";  // What it tells its operator is no part of the store.
#endif
  return leveldb::DB::Open(options, "store", store);
}

void MustBeOk(const leveldb::Status& status) {
  if (status.ok()) return;
  std::cerr << status.ToString() << std::endl;
  exit(1);
}

void Put(leveldb::DB* store, int number, size_t length, bool sync) {
  leveldb::WriteOptions options;
  options.sync = sync;
  MustBeOk(store->Put(options, KeyOf(number), ValueOf(number, length)));
}

#ifdef ROCKSDB
void Compact(leveldb::DB* store, int) { store->CompactRange(leveldb::CompactRangeOptions(), NULL, NULL); }
#endif

// Version 1.2 cannot be asked to compact.
template <typename Store>
auto Compact(Store* store, int) -> decltype(store->CompactRange(NULL, NULL)) {
  store->CompactRange(NULL, NULL);
}

template <typename Store>
void Compact(Store*, ...) {}

void SetUp(const Workload& workload) {
  if (workload.creates()) return;
  leveldb::DB* store;
  MustBeOk(Open(true, &store));
  for (int number = 0; number < workload.before(); number++) Put(store, number, workload.length(), true);
  delete store;
}

void Run(const Workload& workload, const std::string& sync) {
  if (workload.repairs()) MustBeOk(leveldb::RepairDB("store", leveldb::Options()));
  leveldb::DB* store;
  MustBeOk(Open(workload.creates(), &store));
  for (int i = 1; i <= kPuts; i++) {
    const int number = workload.before() + i - 1;
    const bool is_synced = sync == "every" || (sync == "second" && i % 2 == 0);
    Put(store, number, workload.length(), is_synced);
    if (is_synced) std::cout << number << std::endl;
  }
  if (workload.name == "compact") Compact(store, 0);
  delete store;
}

// The number of the last put that was acknowledged, or of the last one before the run.
int LastAcknowledged(const Workload& workload) {
  std::ifstream lines(getenv("POSTCRASH_ACKNOWLEDGED"));
  int last = workload.before() - 1;
  for (int number; lines >> number;) last = number;
  return last;
}

// What is wrong with the pairs, or nothing.
std::string WrongPairs(leveldb::DB* store, const Workload& workload, int last, bool repaired) {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  leveldb::Iterator* pairs = store->NewIterator(options);
  std::string wrong;
  int count = 0, highest = -1;
  for (pairs->SeekToFirst(); pairs->Valid(); pairs->Next(), count++) {
    highest = atoi(pairs->key().ToString().c_str());
    const std::string value = pairs->value().ToString();
    if (value != ValueOf(highest, workload.length())) wrong = "a pair has a value that was not put";
  }
  if (!pairs->status().ok()) wrong = "a pair cannot be read: " + pairs->status().ToString();
  delete pairs;
  if (!wrong.empty() || repaired) return wrong;
  if (highest != count - 1) return "a put is there without an earlier one";
  return count > last ? "" : "a synced put is lost";
}

// What its user does after a crash, without a look at what is there.
void Recover(const Workload& workload) {
  leveldb::DB* store;
  leveldb::Status status = Open(workload.creates(), &store);
  if (!status.ok() && workload.repairs()) {
    MustBeOk(leveldb::RepairDB("store", leveldb::Options()));
    status = Open(false, &store);
  }
  MustBeOk(status);
  delete store;
}

std::string Check(const Workload& workload) {
  const int last = LastAcknowledged(workload);
  // A repair that has not ended is done again.
  const bool may_repair = workload.repairs() && last < workload.before();
  leveldb::DB* store;
  leveldb::Status status = Open(workload.creates() && last < 0, &store);
  bool repaired = false;
  if (!status.ok() && may_repair) {
    status = leveldb::RepairDB("store", leveldb::Options());
    repaired = true;
    if (status.ok()) status = Open(false, &store);
  }
  if (!status.ok()) return "the store does not open: " + status.ToString();
  const std::string wrong = WrongPairs(store, workload, last, may_repair);
  if (!wrong.empty()) return wrong;
  Put(store, kUsedOn, kSmall, true);
  delete store;
  std::string value;
  status = Open(false, &store);
  if (status.ok()) status = store->Get(leveldb::ReadOptions(), KeyOf(kUsedOn), &value);
  if (!status.ok() || value != ValueOf(kUsedOn, kSmall)) return "the store cannot be used on: " + status.ToString();
  delete store;
  return "";
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const std::string what = words[1];
  const Workload workload = {words[2]};
  if (what == "set-up") {
    SetUp(workload);
  } else if (what == "run" && count == 4) {
    Run(workload, words[3]);
  } else if (what == "recover") {
    Recover(workload);
  } else if (what == "check") {
    const std::string wrong = Check(workload);
    std::cout << wrong << std::endl;
    return wrong.empty() ? 0 : 1;
  } else {
    return 2;
  }
  return 0;
}
