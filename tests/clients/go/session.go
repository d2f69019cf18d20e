// A session of go-redis, in both protocols: the list of ../README.md. RUSSET_PORT says where the server is.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	wait   = 10 * time.Second
	script = "redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('GET', KEYS[1]), 7}"
	// Two functions, one that writes and one that says that it does not.
	library = `#!lua name=session
redis.register_function('keep', function(keys, args)
  return redis.call('SET', keys[1], args[1])
end)
redis.register_function{
  function_name = 'kept', flags = {'no-writes'},
  callback = function(keys) return redis.call('GET', keys[1]) end
}`
)

var ctx = context.Background()

type result[T any] interface{ Result() (T, error) }

func check(holds bool, seen any) {
	if !holds {
		panic(fmt.Sprintf("unexpected: %v", seen))
	}
}

func same(seen, expected any) {
	check(reflect.DeepEqual(seen, expected), fmt.Sprintf("%#v instead of %#v", seen, expected))
}

// answers checks what a command came to.
func answers[T any](command result[T], expected T) {
	seen, err := command.Result()
	check(err == nil, err)
	same(seen, expected)
}

func refused(err error, text string) {
	check(err != nil && strings.Contains(err.Error(), text), err)
}

func sorted(words []string, err error) []string {
	check(err == nil, err)
	sort.Strings(words)
	return words
}

func plainTypes(client *redis.Client) {
	answers(client.SetNX(ctx, "k", "v", time.Minute), true)
	answers(client.SetNX(ctx, "k", "w", time.Minute), false)
	check(client.PTTL(ctx, "k").Val() > 0, "a time to live")
	answers(client.IncrBy(ctx, "n", 5), 5)
	answers(client.IncrByFloat(ctx, "n", 0.5), 5.5)
	answers(client.MSet(ctx, "a", 1, "b", 2), "OK")
	answers(client.MGet(ctx, "a", "b", "none"), []any{"1", "2", nil})
	refused(client.Incr(ctx, "k").Err(), "not an integer")
	var found []string
	keys := client.Scan(ctx, 0, "[ab]", 1).Iterator()
	for keys.Next(ctx) {
		found = append(found, keys.Val())
	}
	same(sorted(found, keys.Err()), []string{"a", "b"})

	answers(client.SetBit(ctx, "bits", 7, 1), 0)
	answers(client.BitCount(ctx, "bits", nil), 1)
	answers(client.BitField(ctx, "bits", "SET", "u8", 8, 200, "GET", "u8", 8), []int64{0, 200})
	answers(client.PFAdd(ctx, "visitors", "x", "y", "x"), 1)
	answers(client.PFCount(ctx, "visitors"), 2)
}

func collections(client *redis.Client) {
	answers(client.RPush(ctx, "list", "x", "y", "z"), 3)
	answers(client.LRange(ctx, "list", 0, -1), []string{"x", "y", "z"})
	answers(client.LMove(ctx, "list", "other", "RIGHT", "LEFT"), "z")
	key, popped, err := client.LMPop(ctx, "left", 2, "list").Result()
	check(err == nil, err)
	same(append([]string{key}, popped...), []string{"list", "x", "y"})

	answers(client.HSet(ctx, "hash", "f", 1, "g", "two"), 2)
	answers(client.HGetAll(ctx, "hash"), map[string]string{"f": "1", "g": "two"})
	answers(client.HIncrBy(ctx, "hash", "f", 4), 5)
	answers(client.HMGet(ctx, "hash", "f", "none"), []any{"5", nil})
	answers(client.HExpire(ctx, "hash", time.Minute, "f", "none"), []int64{1, -2})

	answers(client.SAdd(ctx, "s1", "a", "b", "c"), 3)
	answers(client.SAdd(ctx, "s2", "b", "c", "d"), 3)
	same(sorted(client.SInter(ctx, "s1", "s2").Result()), []string{"b", "c"})
	answers(client.SUnionStore(ctx, "s3", "s1", "s2"), 4)
	answers(client.SMIsMember(ctx, "s1", "a", "d"), []bool{true, false})

	members := []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}, {Score: 3, Member: "c"}}
	answers(client.ZAdd(ctx, "zset", members...), 3)
	answers(client.ZRangeWithScores(ctx, "zset", 0, -1), members)
	above := redis.ZRangeArgs{Key: "zset", Start: "(1", Stop: "+inf", ByScore: true}
	answers(client.ZRangeArgs(ctx, above), []string{"b", "c"})
	answers(client.ZIncrBy(ctx, "zset", 10, "a"), 11)
	answers(client.ZRank(ctx, "zset", "a"), 2)
	answers(client.ZPopMin(ctx, "zset"), members[1:2])

	answers(client.GeoAdd(ctx, "places",
		&redis.GeoLocation{Name: "Palermo", Longitude: 13.361389, Latitude: 38.115556},
		&redis.GeoLocation{Name: "Catania", Longitude: 15.087269, Latitude: 37.502669}), 2)
	distance := client.GeoDist(ctx, "places", "Palermo", "Catania", "km").Val()
	check(distance > 166.273 && distance < 166.275, distance)
	near := redis.GeoSearchQuery{Longitude: 15, Latitude: 37, Radius: 100, RadiusUnit: "km"}
	answers(client.GeoSearch(ctx, "places", &near), []string{"Catania"})
}

func streams(client *redis.Client) {
	first := redis.XMessage{ID: "1-1", Values: map[string]any{"f": "1"}}
	answers(client.XAdd(ctx, &redis.XAddArgs{Stream: "stream", ID: "1-1", Values: first.Values}), "1-1")
	answers(client.XAdd(ctx, &redis.XAddArgs{Stream: "stream", ID: "1-2", Values: []string{"f", "2"}}), "1-2")
	answers(client.XRangeN(ctx, "stream", "-", "+", 1), []redis.XMessage{first})
	answers(client.XGroupCreate(ctx, "stream", "group", "0"), "OK")
	read := &redis.XReadGroupArgs{Group: "group", Consumer: "me", Streams: []string{"stream", ">"}, Count: 1}
	answers(client.XReadGroup(ctx, read), []redis.XStream{{Stream: "stream", Messages: []redis.XMessage{first}}})
	pending, err := client.XPending(ctx, "stream", "group").Result()
	check(err == nil && pending.Count == 1, pending)
	answers(client.XAck(ctx, "stream", "group", "1-1"), 1)
}

func scripts(client *redis.Client) {
	same(client.Eval(ctx, script, []string{"s"}, "value").Val(), []any{"s", "value", int64(7)})
	// Run calls by the digest first, and sends the script when it is told that there is none.
	keep := redis.NewScript(script)
	answers(client.ScriptFlush(ctx), "OK")
	refused(keep.EvalSha(ctx, client, []string{"s"}, "none").Err(), "NOSCRIPT")
	same(keep.Run(ctx, client, []string{"s"}, "again").Val(), []any{"s", "again", int64(7)})
	same(keep.EvalSha(ctx, client, []string{"s"}, "third").Val(), []any{"s", "third", int64(7)})
	refused(client.Eval(ctx, "return redis.error_reply('ERR no such thing')", nil).Err(), "no such thing")

	answers(client.FunctionLoadReplace(ctx, library), "session")
	same(client.FCall(ctx, "keep", []string{"f"}, "value").Val(), "OK")
	same(client.FCallRO(ctx, "kept", []string{"f"}).Val(), "value")
	refused(client.FCallRO(ctx, "keep", []string{"f"}, "x").Err(), "write flag")
	libraries, err := client.FunctionList(ctx, redis.FunctionListQuery{}).Result()
	check(err == nil && len(libraries) == 1 && libraries[0].Name == "session", libraries)
	answers(client.FunctionDelete(ctx, "session"), "OK")
}

func pipelinesAndTransactions(client *redis.Client) {
	commands, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n := 0; n < 200; n++ {
			pipe.Incr(ctx, "counter")
		}
		return nil
	})
	check(err == nil && len(commands) == 200, err)
	for at, command := range commands {
		same(command.(*redis.IntCmd).Val(), int64(at+1))
	}

	client.Set(ctx, "a", 1, 0)
	var got *redis.StringCmd
	increment := func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Incr(ctx, "a")
			got = pipe.Get(ctx, "a")
			return nil
		})
		return err
	}
	check(client.Watch(ctx, increment, "a") == nil, "a transaction")
	same(got.Val(), "2")
	err = client.Watch(ctx, func(tx *redis.Tx) error {
		client.Incr(ctx, "a")
		return increment(tx)
	}, "a")
	check(errors.Is(err, redis.TxFailedErr), err)
}

// served is what a call that blocks answers when it is fed.
func served[T any](client *redis.Client, call func() (T, error), feed func() error) T {
	type outcome struct {
		answer T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		answer, err := call()
		done <- outcome{answer, err}
	}()
	deadline := time.Now().Add(wait)
	for strings.Contains(client.Info(ctx, "clients").Val(), "blocked_clients:0\r") {
		check(time.Now().Before(deadline), "nobody is blocked")
	}
	err := feed()
	check(err == nil, err)
	select {
	case outcome := <-done:
		check(outcome.err == nil, outcome.err)
		return outcome.answer
	case <-time.After(wait):
		panic("not served")
	}
}

func blocking(client *redis.Client) {
	same(served(client, func() ([]string, error) { return client.BLPop(ctx, wait, "queue").Result() },
		func() error { return client.RPush(ctx, "queue", "job").Err() }), []string{"queue", "job"})
	popped := served(client, func() (*redis.ZWithKey, error) { return client.BZPopMin(ctx, wait, "scores").Result() },
		func() error { return client.ZAdd(ctx, "scores", redis.Z{Score: 1.5, Member: "m"}).Err() })
	same(*popped, redis.ZWithKey{Z: redis.Z{Score: 1.5, Member: "m"}, Key: "scores"})
	same(served(client, func() (string, error) { return client.BLMove(ctx, "from", "to", "LEFT", "RIGHT", wait).Result() },
		func() error { return client.RPush(ctx, "from", "x").Err() }), "x")
	read := served(client, func() ([]redis.XStream, error) {
		return client.XRead(ctx, &redis.XReadArgs{Streams: []string{"events", "$"}, Block: wait}).Result()
	}, func() error {
		return client.XAdd(ctx, &redis.XAddArgs{Stream: "events", ID: "5-1", Values: []string{"f", "v"}}).Err()
	})
	same(read[0].Messages[0].ID, "5-1")
	err := client.Do(ctx, "BLPOP", "queue", "0.05").Err()
	check(errors.Is(err, redis.Nil), err)
}

func messages(client *redis.Client) {
	listener := client.Subscribe(ctx, "news")
	defer listener.Close()
	check(listener.PSubscribe(ctx, "w*") == nil, "a pattern")
	check(listener.SSubscribe(ctx, "shard") == nil, "a shard's channel")
	for n := 0; n < 3; n++ {
		confirmed, err := listener.ReceiveTimeout(ctx, wait)
		_, isSubscription := confirmed.(*redis.Subscription)
		check(err == nil && isSubscription, confirmed)
	}
	answers(client.Publish(ctx, "news", "hello"), 1)
	answers(client.Publish(ctx, "weather", "rain"), 1)
	answers(client.SPublish(ctx, "shard", "piece"), 1)
	for _, expected := range []string{"news hello", "weather rain", "shard piece"} {
		heard, err := listener.ReceiveTimeout(ctx, wait)
		check(err == nil, err)
		message, isMessage := heard.(*redis.Message)
		check(isMessage, heard)
		same(message.Channel+" "+message.Payload, expected)
	}
}

func session(protocol int) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Getenv("RUSSET_PORT"), Protocol: protocol})
	defer client.Close()
	answers(client.FlushAll(ctx), "OK")
	answers(client.Ping(ctx), "PONG")
	check(strings.Contains(client.Info(ctx, "server").Val(), "server_name:russet"), "INFO")
	plainTypes(client)
	collections(client)
	streams(client)
	scripts(client)
	pipelinesAndTransactions(client)
	blocking(client)
	messages(client)
	fmt.Printf("go-redis %s over RESP%d: ok\n", redis.Version(), protocol)
}

func main() {
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", failure, debug.Stack())
			os.Exit(1)
		}
	}()
	session(2)
	session(3)
}
