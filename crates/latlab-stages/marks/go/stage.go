// Package stage marks stages of a Go program for `latlab explain`. One file, no dependencies.
//
//	read := stage.Begin("read")
//	n, err := file.Read(buffer)
//	read.End(n)
//
// Nothing happens unless the environment names a ring in LATLAB_STAGES, which `latlab explain` does. Its form is
// written in latlab_stage.rs (`latlab stages rust`). Linux, 64 bits.
package stage

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Stage is one that has begun.
type Stage struct {
	begun uint64
	name  uint32
}

const (
	names   = 256
	slotsAt = 64 + names*64
	ended   = 1
)

var (
	base    unsafe.Pointer
	mask    uint64
	process = uint32(os.Getpid())
	known   sync.Map // name -> its number
	// Go has no call for CLOCK_MONOTONIC: the clock is asked once, and its monotonic time counted from there.
	origin   time.Time
	originNS uint64
)

func init() {
	path := os.Getenv("LATLAB_STAGES")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() <= slotsAt {
		return
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return
	}
	slots := *(*uint32)(unsafe.Pointer(&memory[8]))
	if string(memory[:8]) != "LATSTG01" || slots == 0 || slots&(slots-1) != 0 || info.Size() < slotsAt+int64(slots)*64 {
		syscall.Munmap(memory)
		return
	}
	var now syscall.Timespec
	origin = time.Now()
	if _, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&now)), 0); failed != 0 {
		return
	}
	originNS = uint64(now.Nano())
	mask = uint64(slots) - 1
	base = unsafe.Pointer(&memory[0])
}

// Begin begins a stage.
func Begin(name string) Stage {
	if base == nil {
		return Stage{}
	}
	number := nameNumber(name)
	return Stage{write(number, 0, 0, 0), number}
}

// End ends it; bytes is what it has gone through, or 0.
func (s Stage) End(bytes int) {
	if base != nil && s.begun != 0 {
		write(s.name, ended, s.begun, uint64(bytes))
	}
}

func word(at uintptr) *uint64 { return (*uint64)(unsafe.Add(base, at)) }
func half(at uintptr) *uint32 { return (*uint32)(unsafe.Add(base, at)) }

func nameNumber(name string) uint32 {
	if number, ok := known.Load(name); ok {
		return number.(uint32)
	}
	text := name
	if len(text) > 56 {
		end := 56
		for end > 0 && text[end]&0xC0 == 0x80 {
			end--
		}
		text = text[:end]
	}
	number := uint32(0)
	for ; number < names; number++ {
		at := uintptr(64 + number*64)
		if number == names-1 {
			text = "(further names)"
		}
		if atomic.CompareAndSwapUint32(half(at), 0, 1) {
			copy(unsafe.Slice((*byte)(unsafe.Add(base, at+8)), 56), text)
			*half(at + 4) = uint32(len(text))
			atomic.StoreUint32(half(at), 2)
			break
		}
		for turn := 0; turn < 10000 && atomic.LoadUint32(half(at)) != 2; turn++ {
		}
		if atomic.LoadUint32(half(at)) == 2 && string(unsafe.Slice((*byte)(unsafe.Add(base, at+8)), *half(at + 4))) == text {
			break
		}
	}
	if number == names {
		number = names - 1
	}
	known.Store(name, number)
	return number
}

func write(name, kind uint32, begun, bytes uint64) uint64 {
	index := atomic.AddUint64(word(16), 1) - 1
	at := uintptr(slotsAt + (index&mask)*64)
	atomic.StoreUint64(word(at), 0)
	atomic.StoreUint64(word(at+8), originNS+uint64(time.Since(origin)))
	atomic.StoreUint64(word(at+16), bytes)
	atomic.StoreUint64(word(at+24), begun)
	atomic.StoreUint32(half(at+32), process)
	// A goroutine changes its thread: the span belongs to the process.
	atomic.StoreUint32(half(at+36), 0)
	atomic.StoreUint32(half(at+40), name)
	atomic.StoreUint32(half(at+44), kind)
	atomic.StoreUint64(word(at), index+1)
	return index + 1
}
