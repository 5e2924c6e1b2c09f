package nvs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Type is the type of a value, as a number of the format. The firmware finds a value only if the
// value has the type that the firmware expects.
type Type byte

// The types.
const (
	U8      Type = 0x01
	U16     Type = 0x02
	U32     Type = 0x04
	U64     Type = 0x08
	I8      Type = 0x11
	I16     Type = 0x12
	I32     Type = 0x14
	I64     Type = 0x18
	String  Type = 0x21
	OldBlob Type = 0x41 // blob of format version 1, which cannot span pages
	Blob    Type = 0x48

	blobData  Type = 0x42 // chunk of a Blob
	blobIndex Type = Blob // index entry of a Blob
)

// types returns the name of each type.
func types() map[Type]string {
	return map[Type]string{
		U8: "u8", U16: "u16", U32: "u32", U64: "u64", I8: "i8", I16: "i16", I32: "i32", I64: "i64",
		String: "string", OldBlob: "blob1", Blob: "blob",
	}
}

// ParseType returns the type with the given name: u8 to u64, i8 to i64, string, blob, or blob1
// for OldBlob.
func ParseType(name string) (Type, bool) {
	for t, n := range types() {
		if n == name {
			return t, true
		}
	}
	return 0, false
}

// String returns the name of the type.
func (t Type) String() string {
	if name, ok := types()[t]; ok {
		return name
	}
	return fmt.Sprintf("type %#02x", byte(t))
}

// isNumber reports whether the type is an integer type.
func (t Type) isNumber() bool {
	_, ok := types()[t]
	return ok && t < String
}

// size returns the size of an integer type in bytes.
func (t Type) size() int { return int(t & 0x0F) }

// isSigned reports whether an integer type is signed.
func (t Type) isSigned() bool { return t&0x10 != 0 }

// Value is a value as it is stored. Data holds a number in little-endian order, a string without the
// final zero, or a blob.
type Value struct {
	Type Type
	Data []byte
}

// Text returns s as a value of type String.
func Text(s string) Value { return Value{String, []byte(s)} }

// ParseValue parses a value: an integer in decimal or, after 0x, in hexadecimal, such as 12 or 0x0C; an
// unquoted string; or a blob in hexadecimal.
func ParseValue(t Type, text string) (Value, error) {
	switch {
	case t == String:
		return Text(text), nil
	case t == Blob, t == OldBlob:
		data, err := hex.DecodeString(text)
		if err != nil {
			return Value{}, fmt.Errorf("%q is not hex: %w", text, err)
		}
		return Value{t, data}, nil
	case !t.isNumber():
		return Value{}, fmt.Errorf("%v is not supported", t)
	}
	base := 10
	if strings.HasPrefix(strings.ToLower(strings.TrimLeft(text, "+-")), "0x") {
		base = 0 // the prefix decides
	}
	var n uint64
	var err error
	if t.isSigned() {
		var i int64
		i, err = strconv.ParseInt(text, base, 8*t.size())
		n = uint64(i)
	} else {
		n, err = strconv.ParseUint(text, base, 8*t.size())
	}
	if err != nil {
		return Value{}, fmt.Errorf("%q is not a valid %v", text, t)
	}
	return Value{t, binary.LittleEndian.AppendUint64(nil, n)[:t.size()]}, nil
}

// String returns the value in the form that ParseValue parses, with numbers in decimal. Data of an
// unknown type is shown in hexadecimal.
func (v Value) String() string {
	switch {
	case v.Type == String:
		return string(v.Data)
	case !v.Type.isNumber() || len(v.Data) != v.Type.size():
		return hex.EncodeToString(v.Data)
	}
	n := binary.LittleEndian.Uint64(append(bytes.Clone(v.Data), make([]byte, 8)...))
	if v.Type.isSigned() {
		unused := 64 - 8*v.Type.size()
		return strconv.FormatInt(int64(n<<unused)>>unused, 10)
	}
	return strconv.FormatUint(n, 10)
}

// clone returns a copy that does not share Data with v.
func (v Value) clone() Value { return Value{v.Type, bytes.Clone(v.Data)} }

// check returns an error if the format cannot hold the value.
func (v Value) check() error {
	switch {
	case v.Type == String && (len(v.Data) > MaxString || bytes.IndexByte(v.Data, 0) >= 0):
		return fmt.Errorf("a string has at most %d bytes, and contains no zero byte", MaxString)
	case v.Type == OldBlob && len(v.Data) > maxOldBlob, v.Type == Blob && len(v.Data) > MaxBlob:
		return fmt.Errorf("a %v of %d bytes is too long", v.Type, len(v.Data))
	case v.Type.isNumber() && len(v.Data) != v.Type.size():
		return fmt.Errorf("a %v has %d bytes, not %d", v.Type, v.Type.size(), len(v.Data))
	}
	if _, ok := types()[v.Type]; !ok {
		return fmt.Errorf("%v is not supported", v.Type)
	}
	return nil
}

// maxOldBlob is the maximum size of an OldBlob in bytes.
const maxOldBlob = 1984
