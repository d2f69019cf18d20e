# Completion of russet for fish. Made by `cargo xtask conf`.
complete -c russet -n __fish_is_first_token -a check -d 'Say whether data files are good'
complete -c russet -n '__fish_seen_subcommand_from check' -l fix
complete -c russet -n '__fish_seen_subcommand_from check' -l yes
complete -c russet -n '__fish_seen_subcommand_from check' -l largest
complete -c russet -n '__fish_seen_subcommand_from check' -l help
complete -c russet -n __fish_is_first_token -a convert -d 'Make an RDB file or a log'
complete -c russet -n '__fish_seen_subcommand_from convert' -l commands
complete -c russet -n '__fish_seen_subcommand_from convert' -l field-ttl-format
complete -c russet -n '__fish_seen_subcommand_from convert' -l help
complete -c russet -n __fish_is_first_token -a export -d 'Write data as JSON or commands'
complete -c russet -n '__fish_seen_subcommand_from export' -l json
complete -c russet -n '__fish_seen_subcommand_from export' -l commands
complete -c russet -n '__fish_seen_subcommand_from export' -l replace
complete -c russet -n '__fish_seen_subcommand_from export' -l output
complete -c russet -n '__fish_seen_subcommand_from export' -l help
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l check-config -d 'Say what each line of a file does' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l help -d 'Print a short help'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l version -d 'Print the version'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l bind -d 'Addresses to listen on; - before one makes it optional' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l port -d 'TCP port; 0 listens on no TCP port' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l protected-mode -d 'Refuse remote clients while there is no password' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tcp-backlog -d 'Connections that may wait to be accepted' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tcp-keepalive -d 'Seconds between TCP keepalive probes' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l unixsocket -d 'Path of a Unix socket to listen on; empty is none' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l unixsocketperm -d 'Mode of the Unix socket, octal; 0 leaves it' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l unixsocketgroup -d 'Group that owns the Unix socket; empty leaves it' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l timeout -d 'Seconds until an idle client is closed; 0 is never' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l login-timeout -d 'Seconds until a client that must log in and has not is closed; 0 is never' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l bind-source-addr -d 'Local address of outgoing connections' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l socket-mark-id -d 'Packet mark of sockets' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l max-new-connections-per-cycle -d 'Connections accepted in one turn of an event loop' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l mptcp -d 'Listen with multipath TCP' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdma-bind -d 'Addresses to listen on for RDMA' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdma-port -d 'RDMA port; 0 is none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdma-rx-size -d 'Bytes of an RDMA receive buffer' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdma-completion-vector -d 'RDMA completion vector; -1 is any' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l proto-max-bulk-len -d 'Longest string that a request may carry' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l lookahead -d 'Commands of a pipeline that are parsed ahead' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l prefetch-batch-max-size -d 'Keys looked up ahead of a batch of commands' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l maxclients -d 'Connections open at once' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l client-query-buffer-limit -d 'Most bytes that one client\'s unfinished request may hold' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l client-output-buffer-limit -d 'Per class of client: hard bytes, soft bytes, soft seconds; 0 is no limit' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l maxmemory-clients -d 'Memory that all clients may hold before the largest are closed; 0 is no limit' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tracking-table-max-keys -d 'Keys remembered for client-side caching; 0 is no limit' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l maxmemory -d 'Memory for data; 0 is no limit' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l maxmemory-policy -d 'What to remove when memory runs out' -x -a 'volatile-lru volatile-lrm volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lrm allkeys-lfu allkeys-random noeviction'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l maxmemory-samples -d 'Keys looked at to choose one to evict' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l maxmemory-eviction-tenacity -d 'How long a command may be delayed by eviction, from least to most' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l lfu-log-factor -d 'How slowly the use counter of LFU grows' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l lfu-decay-time -d 'Minutes until the use counter of LFU halves' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l active-expire-effort -d 'Work spent on finding expired keys' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l lazyfree-lazy-eviction -d 'Free evicted values in background' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l lazyfree-lazy-expire -d 'Free expired values in background' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l lazyfree-lazy-server-del -d 'Free values that a command overwrites in background' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l lazyfree-lazy-user-del -d 'DEL frees in background, like UNLINK' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l lazyfree-lazy-user-flush -d 'FLUSHALL and FLUSHDB free in background unless SYNC is given' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l activerehashing -d 'Grow tables in idle time too' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l activedefrag -d 'Move values to undo fragmentation' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l active-defrag-ignore-bytes -d 'Fragmentation that is let be' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l active-defrag-threshold-lower -d 'Percent of fragmentation at which defragmentation starts' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l active-defrag-threshold-upper -d 'Percent of fragmentation at which it works hardest' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l active-defrag-cycle-min -d 'Least percent of CPU for it' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l active-defrag-cycle-max -d 'Most percent of CPU for it' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l active-defrag-cycle-us -d 'Microseconds of one step of defragmentation' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l active-defrag-max-scan-fields -d 'Elements of a collection that one step moves' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l jemalloc-bg-thread -d 'Give freed memory back from a thread' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l key-memory-histograms -d 'Count memory per type in INFO' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l hash-max-listpack-entries -d 'Fields of a packed hash' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l hash-max-listpack-value -d 'Longest field or value of a packed hash' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l list-max-listpack-size -d 'Elements of a list chunk, or from -1 to -5 its size: 4, 8, 16, 32 or 64 kilobytes' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l list-compress-depth -d 'Chunks at each end of a list that stay uncompressed; 0 compresses none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l set-max-intset-entries -d 'Members of an integer set' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l set-max-listpack-entries -d 'Members of a packed set' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l set-max-listpack-value -d 'Longest member of a packed set' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l zset-max-listpack-entries -d 'Members of a packed sorted set' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l zset-max-listpack-value -d 'Longest member of a packed sorted set' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l hll-sparse-max-bytes -d 'Bytes up to which a HyperLogLog stays sparse' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l stream-node-max-bytes -d 'Bytes of a stream node; 0 is no limit' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l stream-node-max-entries -d 'Entries of a stream node; 0 is no limit' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l sanitize-dump-payload -d 'How deeply RESTORE and loading check their input' -x -a 'no yes clients'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l loglevel -d 'How much to log' -x -a 'debug verbose notice warning nothing'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l logfile -d 'Where to log; empty is standard output' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l log-format -d 'Shape of log lines' -x -a 'legacy logfmt json'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l log-timestamp-format -d 'Shape of the time in log lines, in UTC' -x -a 'legacy iso8601 milliseconds'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l syslog-enabled -d 'Log to syslog too' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l syslog-ident -d 'Name in syslog' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l syslog-facility -d 'Facility of syslog' -x -a 'user local0 local1 local2 local3 local4 local5 local6 local7'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l always-show-logo -d 'Print a banner at start' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l hide-user-data-from-log -d 'Keep clients\' data out of the log' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l crash-log-enabled -d 'Log a report on a crash' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l crash-memcheck-enabled -d 'Test memory after a crash' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l slowlog-log-slower-than -d 'Microseconds from which a command is slow; 0 is every command, -1 none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l slowlog-max-len -d 'Entries of the slow log' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l commandlog-request-larger-than -d 'Bytes from which a request is large; -1 is none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l commandlog-large-request-max-len -d 'Entries of the log of large requests' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l commandlog-reply-larger-than -d 'Bytes from which a reply is large; -1 is none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l commandlog-large-reply-max-len -d 'Entries of the log of large replies' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l commandlog-shard-wait-longer-than -d 'Microseconds from which a wait for keys that another call holds is remembered; -1 is none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l commandlog-shard-wait-max-len -d 'Entries of the log of such waits' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l latency-monitor-threshold -d 'Milliseconds from which an event is a latency spike; 0 watches none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l hotkeys-top-k -d 'How many of the keys that are called most HOTKEYS GET always knows; 0 counts none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l hotkeys-window-seconds -d 'For how long their calls are counted; what is told is of the last such time' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l latency-tracking -d 'Keep a histogram of each command\'s latency' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l latency-tracking-info-percentiles -d 'Percentiles that INFO shows of those histograms' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l notify-keyspace-events -d 'Which changes of keys are published, by letter' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l metrics-port -d 'Port for /metrics, /health/live and /health/ready over HTTP, where bind says; 0 is none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l requirepass -d 'Password of the default user; empty is none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l aclfile -d 'File of users' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l acllog-max-len -d 'Entries of ACL LOG' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l acl-pubsub-default -d 'Channels that a new user may use' -x -a 'allchannels resetchannels'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l enable-protected-configs -d 'Who may change directives that name files' -x -a 'no yes local'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l enable-debug-command -d 'Who may use DEBUG' -x -a 'no yes local'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l enable-module-command -d 'Who may use MODULE' -x -a 'no yes local'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l threads -d 'Event loops; 0 is one for each core' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l threads-min -d 'Event loops that are open however little there is to do' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l shards -d 'Parts of the keyspace; 0 chooses' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l redis-version -d 'Version of Redis that clients are told' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l databases -d 'Databases that SELECT can reach' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l daemonize -d 'Run in the background' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l supervised -d 'Supervisor to tell that the server is ready; auto asks the environment for it' -x -a 'upstart systemd auto no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l pidfile -d 'File that holds the process id' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l hz -d 'Rounds of background work in a second, 1 to 500' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l dynamic-hz -d 'More rounds when there are many clients' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l io-threads -d 'Kept for files of Redis; threads is used' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l shutdown-on-sigint -d 'What SIGINT does, as the options of SHUTDOWN' -x -a 'default save nosave now force safe failover'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l shutdown-on-sigterm -d 'What SIGTERM does, as the options of SHUTDOWN' -x -a 'default save nosave now force safe failover'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l shutdown-timeout -d 'Seconds that a shutdown waits for replicas' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l busy-reply-threshold -d 'Milliseconds after which a running script is reported as busy' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l once-records-max -d 'Request ids that ONCE keeps at most' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l script-memory-max -d 'Memory that one Lua interpreter may hold' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l once-bytes-max -d 'Bytes of ids and replies that ONCE keeps' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l script-undeclared-keys -d 'What is done about keys that a script uses but was not given' -x -a 'allow warn refuse'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l set-proc-title -d 'Show the address in the process title' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l proc-title-template -d 'Shape of the process title' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l locale-collate -d 'Locale of SORT ALPHA' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l oom-score-adj -d 'Tell the kernel how soon to end the server when memory runs out' -x -a 'no yes relative absolute'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l oom-score-adj-values -d 'Scores of master, replica and child; the first is used' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l disable-thp -d 'Turn transparent huge pages off' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l ignore-warnings -d 'Warnings at start that are not fatal' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l hash-seed -d 'Seed of the hash function; empty is random' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l server-cpulist -d 'Cores of the event loops' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l bio-cpulist -d 'Cores of background threads' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l aof-rewrite-cpulist -d 'Cores of the log\'s rewriting' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l bgsave-cpulist -d 'Cores of snapshots' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l extended-redis-compatibility -d 'Valkey calls itself Redis; redis-version says it here' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l availability-zone -d 'Zone that INFO and HELLO report' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l import-mode -d 'Hold expiry back during an import' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l dir -d 'Working directory: where data files are' -x -a '(__fish_complete_directories)'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l save -d 'Seconds and changes after which a snapshot is taken' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l dbfilename -d 'File of the snapshot' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdbcompression -d 'Compress strings in snapshots' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdbchecksum -d 'End snapshots with a checksum' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdb-version-check -d 'Whether snapshots of newer versions are refused' -x -a 'strict relaxed'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdb-field-ttl-format -d 'How deadlines of hash fields are saved: as Valkey 9 or as Redis 7.4 reads them' -x -a 'valkey redis'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdb-del-sync-files -d 'Remove snapshots made for replication' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l rdb-save-incremental-fsync -d 'Sync snapshots in steps' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l stop-writes-on-bgsave-error -d 'Refuse writes while snapshots fail' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l appendonly -d 'Keep the append-only log' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l appendfilename -d 'First part of the log\'s file names' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l appenddirname -d 'Directory of the log\'s files' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l appendfsync -d 'When the log is made durable' -x -a 'everysec always no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l no-appendfsync-on-rewrite -d 'Don\'t sync the log while a snapshot is written' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l auto-aof-rewrite-percentage -d 'Growth in percent after which the log is rewritten; 0 is never' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l auto-aof-rewrite-min-size -d 'Size below which the log is not rewritten' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l aof-load-truncated -d 'Load a log whose end is cut off' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l aof-use-rdb-preamble -d 'Rewrite the log as a snapshot' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l aof-timestamp-enabled -d 'Note the time in the log' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l aof-rewrite-incremental-fsync -d 'Sync the rewritten log in steps' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l journal-backlog-max -d 'Bytes on their way to the log after which calls that write wait' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replicaof -d 'Host and port to copy from; empty is none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l masterauth -d 'Password for the primary' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l masteruser -d 'User for the primary' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-serve-stale-data -d 'Answer while not in sync' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-read-only -d 'Refuse writes on a replica' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-lazy-flush -d 'Free old data in background at a sync' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-ignore-maxmemory -d 'Leave eviction to the primary' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-priority -d 'Rank in a failover; 0 is never' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-announced -d 'Show the replica to Sentinel' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-announce-ip -d 'Address to announce' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-announce-port -d 'Port to announce' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-ignore-disk-write-errors -d 'Go on when a replica\'s disk fails' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l replica-full-sync-buffer-limit -d 'Writes held back during a full sync; 0 follows the replica output limit' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-diskless-sync -d 'Send snapshots without a file' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-diskless-sync-delay -d 'Seconds to wait for more replicas before a snapshot is sent' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-diskless-sync-max-replicas -d 'Replicas that end the wait; 0 waits it out' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-diskless-load -d 'Whether a replica loads without a file' -x -a 'disabled on-empty-db swapdb flush-before-load'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-rdb-channel -d 'Send snapshots over their own connection' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l dual-channel-replication-enabled -d 'Valkey\'s way to send snapshots over their own connection' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-disable-tcp-nodelay -d 'Gather small packets' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-mptcp -d 'Replicate over multipath TCP' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-ping-replica-period -d 'Seconds between pings to replicas' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-timeout -d 'Seconds until the other side is given up' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-backlog-size -d 'Bytes kept for replicas that come back' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l repl-backlog-ttl -d 'Seconds that they are kept without a replica; 0 is for ever' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l min-replicas-to-write -d 'Replicas without which writes are refused' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l min-replicas-max-lag -d 'Seconds of lag up to which a replica counts' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l propagation-error-behavior -d 'What to do when a replicated command fails' -x -a 'ignore panic panic-on-replicas'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-enabled -d 'Be a node of a cluster' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-config-file -d 'File of the cluster\'s state' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-config-save-behavior -d 'What to do when that file can\'t be written' -x -a 'sync best-effort'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-databases -d 'Databases of a cluster' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-port -d 'Port of the bus; 0 is the port and 10000' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-node-timeout -d 'Milliseconds until a silent node counts as failing' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-replica-validity-factor -d 'How old a replica\'s data may be at a failover; 0 is any age' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-replica-no-failover -d 'Never fail over by itself' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-migration-barrier -d 'Replicas that a primary keeps when one moves away' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-allow-replica-migration -d 'Let replicas move' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-require-full-coverage -d 'Stop when a slot has no node' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-allow-reads-when-down -d 'Answer reads while the cluster is down' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-allow-pubsubshard-when-down -d 'Serve sharded pub/sub while the cluster is down' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-manual-failover-timeout -d 'Milliseconds that a manual failover may take' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-blacklist-ttl -d 'Seconds until a forgotten node may join again' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-link-sendbuf-limit -d 'Bytes waiting on a link of the bus; 0 is no limit' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-ip -d 'Address to announce' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-port -d 'Port to announce' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-tls-port -d 'TLS port to announce' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-bus-port -d 'Bus port to announce' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-client-ipv4 -d 'IPv4 announced to clients' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-client-ipv6 -d 'IPv6 announced to clients' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-client-port -d 'Port announced to clients' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-client-tls-port -d 'TLS port announced to clients' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-hostname -d 'Host name to announce' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-announce-human-nodename -d 'Name in logs' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-preferred-endpoint-type -d 'How clients are told of a node' -x -a 'ip hostname unknown-endpoint'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-slot-stats-enabled -d 'Count use per slot' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-compatibility-sample-ratio -d 'Percent of commands checked for what a cluster would refuse' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-slot-migration-log-max-len -d 'Finished migrations that are remembered' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-slot-migration-handoff-max-lag-bytes -d 'Lag at which a migration takes over' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l cluster-slot-migration-write-pause-timeout -d 'Milliseconds that writes may be held for a migration' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l slot-migration-max-failover-repl-bytes -d 'Lag at which Valkey\'s migration takes over; -1 is any' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-port -d 'Port for TLS; 0 is none' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-replication -d 'Replicate over TLS' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-cluster -d 'Connect to other servers of a cluster over TLS, as MIGRATE does' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-cert-file -d 'Certificate of the server' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-key-file -d 'Key of the server' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-key-file-pass -d 'Password of that key' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-client-cert-file -d 'Certificate for outgoing connections' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-client-key-file -d 'Key for outgoing connections' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-client-key-file-pass -d 'Password of that key' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-dh-params-file -d 'Diffie-Hellman parameters' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-ca-cert-file -d 'Certificates that clients are checked against' -r -F
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-ca-cert-dir -d 'Directory of such certificates' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-auth-clients -d 'Whether clients must show a certificate' -x -a 'no yes optional'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-auth-clients-user -d 'Field of the certificate that names the user' -x -a 'CN URI off'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-protocols -d 'Versions of TLS to speak' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-ciphers -d 'Ciphers up to TLS 1.2' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-ciphersuites -d 'Ciphers of TLS 1.3' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-prefer-server-ciphers -d 'Prefer our order of ciphers' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-session-caching -d 'Let clients resume sessions' -x -a 'yes no'
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-session-cache-size -d 'Sessions remembered' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-session-cache-timeout -d 'Seconds that a session is remembered' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l tls-auto-reload-interval -d 'Seconds between looks for new certificates; 0 is never' -x
complete -c russet -n 'not __fish_seen_subcommand_from check convert export' -l max-new-tls-connections-per-cycle -d 'TLS connections accepted in one turn of an event loop' -x
