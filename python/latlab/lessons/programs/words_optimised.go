// Counts the words on standard input, the most frequent first: in one small buffer, in place, with next to no allocations.
package main

import (
	"bufio"
	"io"
	"os"
	"sort"
	"strconv"

	"words/stage"
)

type entry struct {
	word  string
	count *int
}

func main() {
	counts := map[string]*int{}
	buffer := make([]byte, 64<<10)
	kept := 0 // bytes at the front of the buffer: a word that has begun and not ended
	for more := true; more; {
		reading := stage.Begin("reading")
		got, err := os.Stdin.Read(buffer[kept:])
		if err != nil && err != io.EOF {
			panic(err)
		}
		more = err == nil
		reading.End(got)

		processing := stage.Begin("processing")
		start, end := 0, kept+got
		for i := kept; i < end; i++ {
			c := buffer[i]
			switch {
			case c == ' ' || '\t' <= c && c <= '\r':
				add(counts, buffer[start:i])
				start = i + 1
			case 'A' <= c && c <= 'Z':
				buffer[i] = c + ('a' - 'A')
			}
		}
		kept = copy(buffer, buffer[start:end])
		if kept == len(buffer) {
			buffer = append(buffer, make([]byte, len(buffer))...)
		}
		processing.End(got)
	}
	add(counts, buffer[:kept])

	sorting := stage.Begin("sorting")
	ordered := make([]entry, 0, len(counts))
	for word, count := range counts {
		ordered = append(ordered, entry{word, count})
	}
	sort.Slice(ordered, func(i, j int) bool { return *ordered[i].count > *ordered[j].count })
	sorting.End(0)

	outputting := stage.Begin("outputting")
	out := bufio.NewWriter(os.Stdout)
	for _, each := range ordered {
		out.WriteString(each.word)
		out.WriteByte(' ')
		out.WriteString(strconv.Itoa(*each.count))
		out.WriteByte('\n')
	}
	if err := out.Flush(); err != nil {
		panic(err)
	}
	outputting.End(0)
}

// add counts a word; a new one is the only thing that is allocated.
func add(counts map[string]*int, word []byte) {
	if len(word) == 0 {
		return
	}
	if count := counts[string(word)]; count != nil { // no string is made for looking up
		*count++
		return
	}
	count := new(int)
	*count = 1
	counts[string(word)] = count
}
