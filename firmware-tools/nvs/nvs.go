// Package nvs reads and writes the NVS partition with the settings of an ESP robot: format
// version 2 of ESP-IDF, not encrypted. It writes the same bytes as Espressif's generator, and
// reads partitions that a robot wrote, with entries erased and moved.
//
// A partition is pages of 4096 bytes: a header of 32 bytes, a bitmap of the
// entries that are written or erased, and 126 entries of 32 bytes. A number
// is one entry; a string is one entry and the following ones with its bytes,
// within one page; a blob is chunks of that form, on as many pages as needed, and
// an index entry with their number.
package nvs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Sizes and bounds of the format.
const (
	PageSize  = 4096
	MinSize   = 3 * PageSize // with fewer pages ESP-IDF opens a partition for reading only
	MaxSize   = 1 << 20
	MaxKey    = 15   // characters of a key, or of a namespace
	MaxString = 3999 // bytes, without the closing zero
	MaxBlob   = 508000

	pageEntries    = 126
	entrySize      = 32
	firstEntry     = 64
	mostNamespaces = 254
)

// Errors.
var (
	// ErrFormat is wrapped by Decode for bytes that are not a known NVS partition.
	ErrFormat = errors.New("not an NVS partition")
	// ErrFull is wrapped by Encode if the items do not fit.
	ErrFull = errors.New("the NVS partition is full")
	// ErrItem is wrapped by Set for names and values that the format cannot hold.
	ErrItem = errors.New("not an NVS item")
)

// Item is a value with its names.
type Item struct {
	Namespace string // empty if the name is lost; the firmware does not find such an item
	Key       string
	Value     Value
}

// Partition is the content of an NVS partition in the order of writing. The zero value is an
// empty partition.
type Partition struct {
	records []record
	damaged []string
}

// record is an item as it is stored: namespaces are numbers, and have records in namespace
// 0.
type record struct {
	namespace byte
	key       string
	value     Value
	raw       []byte // of an item of an unknown type: its encoded entries; else nil
}

// namespaces is the namespace of the namespaces' own records.
const namespaces = 0

// Items returns all items, in their order.
func (p *Partition) Items() []Item {
	names := map[byte]string{}
	for _, r := range p.records {
		if r.namespace == namespaces && r.value.Type == U8 {
			names[r.value.Data[0]] = r.key
		}
	}
	var items []Item
	for _, r := range p.records {
		if r.namespace != namespaces {
			items = append(items, Item{names[r.namespace], r.key, r.value.clone()})
		}
	}
	return items
}

// Damaged describes what a robot would drop at its next start: entries with
// a wrong checksum, and incomplete values.
func (p *Partition) Damaged() []string { return slices.Clone(p.damaged) }

// Get returns a value.
func (p *Partition) Get(namespace, key string) (Value, bool) {
	index, there := p.index(namespace)
	at := p.indexOf(index, key)
	if !there || at < 0 {
		return Value{}, false
	}
	return p.records[at].value.clone(), true
}

// Set stores a value in place of the present one, of any type, or at the end.
// Errors wrap ErrItem.
func (p *Partition) Set(namespace, key string, v Value) error {
	if err := errors.Join(checkName("namespace", namespace), checkName("key", key), v.check()); err != nil {
		return fmt.Errorf("%s/%s: %w: %w", namespace, key, ErrItem, err)
	}
	index, there := p.index(namespace)
	if !there {
		if index = p.freeIndex(); index == namespaces {
			return fmt.Errorf("%s/%s: %w: there are %d namespaces already, and no more numbers", namespace, key, ErrItem, mostNamespaces)
		}
		p.records = append(p.records, record{namespace: namespaces, key: namespace, value: Value{U8, []byte{index}}})
	}
	r := record{namespace: index, key: key, value: v.clone()}
	at := p.indexOf(index, key)
	if at < 0 {
		p.records = append(p.records, r)
		return nil
	}
	p.records[at] = r
	// Older builds of ESP-IDF let a key have a value of each type.
	others := slices.DeleteFunc(p.records[at+1:], func(o record) bool { return o.namespace == index && o.key == key })
	p.records = append(p.records[:at+1], others...)
	return nil
}

// Delete removes a value and reports whether there was one. Its namespace
// stays, as the firmware leaves it.
func (p *Partition) Delete(namespace, key string) bool {
	index, there := p.index(namespace)
	before := len(p.records)
	if there {
		p.records = slices.DeleteFunc(p.records, func(r record) bool { return r.namespace == index && r.key == key })
	}
	return len(p.records) < before
}

// indexOf returns the index of a key, or -1.
func (p *Partition) indexOf(namespace byte, key string) int {
	return slices.IndexFunc(p.records, func(r record) bool { return r.namespace == namespace && r.key == key })
}

// index returns the number of a namespace.
func (p *Partition) index(name string) (byte, bool) {
	at := p.indexOf(namespaces, name)
	if at < 0 || p.records[at].value.Type != U8 {
		return namespaces, false
	}
	return p.records[at].value.Data[0], true
}

// freeIndex returns the lowest number that no namespace and no item uses, or 0.
func (p *Partition) freeIndex() byte {
	var used [256]bool
	for _, r := range p.records {
		if r.namespace == namespaces && r.value.Type == U8 {
			used[r.value.Data[0]] = true
		}
		used[r.namespace] = true
	}
	for n := 1; n <= mostNamespaces; n++ {
		if !used[n] {
			return byte(n)
		}
	}
	return namespaces
}

func checkName(what, name string) error {
	if name == "" || len(name) > MaxKey || strings.Contains(name, "\x00") {
		return fmt.Errorf("a %s has 1 to %d bytes", what, MaxKey)
	}
	return nil
}
