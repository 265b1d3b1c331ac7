// Counts the words on standard input, the most frequent first: all of the text at once.
package main

import (
	"bufio"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"

	"words/stage"
)

type entry struct {
	word  string
	count int
}

func main() {
	reading := stage.Begin("reading")
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	text := string(data)
	reading.End(len(data))

	processing := stage.Begin("processing")
	counts := map[string]int{}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		counts[word]++
	}
	processing.End(len(data))

	sorting := stage.Begin("sorting")
	ordered := make([]entry, 0, len(counts))
	for word, count := range counts {
		ordered = append(ordered, entry{word, count})
	}
	sort.Slice(ordered, func(i, j int) bool { return ordered[i].count > ordered[j].count })
	sorting.End(0)

	outputting := stage.Begin("outputting")
	out := bufio.NewWriter(os.Stdout)
	for _, each := range ordered {
		out.WriteString(each.word + " " + strconv.Itoa(each.count) + "\n")
	}
	if err := out.Flush(); err != nil {
		panic(err)
	}
	outputting.End(0)
}
