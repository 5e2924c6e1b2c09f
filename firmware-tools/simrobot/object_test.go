package simrobot

import (
	"encoding/json"
	"testing"
)

func TestObjectIsCJSONs(t *testing.T) {
	o := parseObject([]byte(`{"Key":"first","key":"second","n":-2.9,"big":1e300,"s":7,"b":true,"o":{"x":1}}`))
	if s, ok := o.text("KEY"); !ok || s != "first" {
		t.Errorf("KEY is %q, want the first that fits", s)
	}
	if n, ok := asNumber(o.get("n")); !ok || n != -2 {
		t.Errorf("n is %d, want it truncated", n)
	}
	if n, _ := asNumber(o.get("big")); n != 1<<31-1 {
		t.Errorf("big is %d, want the largest int", n)
	}
	if _, ok := o.text("s"); ok {
		t.Error("a number is a string")
	}
	if _, ok := asNumber(o.get("b")); ok {
		t.Error("a boolean is a number")
	}
	if x := parseObject(o.get("o")); len(x) != 1 || parseObject(o.get("nothing")) != nil {
		t.Errorf("o is %v", x)
	}
	for _, bad := range []string{"", "[]", `"x"`, "{", `{"a"}`, `{"a":}`, `{"a":1`, `{1:2}`, "null"} {
		if parseObject([]byte(bad)) != nil {
			t.Errorf("%s is an object", bad)
		}
	}
}

func FuzzParseObject(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte(`{"a":{"b":[1,2,{"c":null}]},"a":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var any map[string]json.RawMessage
		valid := json.Unmarshal(text, &any) == nil && any != nil
		if o := parseObject(text); valid && len(o) < len(any) {
			t.Errorf("%d members of %d", len(o), len(any))
		}
	})
}

func FuzzReadBootstrap(f *testing.F) {
	f.Add([]byte(goodReply))
	f.Add([]byte(`{"websocket":{"url":"ws://h:1/"},"firmware":{"version":"1.0-rc1","url":"","force":1},"activation":{"code":"1"}}`))
	r := newRobot(f, Options{})
	f.Fuzz(func(t *testing.T, text []byte) {
		if b, err := r.readBootstrap(text); err == nil && !b.Framing.Valid() {
			t.Errorf("framing %d", b.Framing)
		}
	})
}
