package language_test

import (
	"strings"
	"testing"

	"perch/language"
)

func TestUnits(t *testing.T) {
	for _, c := range []struct{ tag, text, want string }{
		{"en", "The wind has 12 km/h, and the flat 20 m².", "The wind has 12 kilometres per hour, and the flat 20 square metres."},
		{"en-GB", "It is 1°C, or -3.5 °C.", "It is 1 degree Celsius, or -3.5 degrees Celsius."},
		{"en", "It costs ¥45 or $5.50.", "It costs 45 yen or 5.50 dollars."},
		{"en", "Turn 90° left at 5 kmart.", "Turn 90 degrees left at 5 kmart."},
		{"en", "I am 5 m and R2D2.", "I am 5 m and R2D2."},
		{"de", "Es sind 20 °C und 12 km/h; das kostet 3,50 €.", "Es sind 20 Grad Celsius und 12 Kilometer pro Stunde; das kostet 3,50 Euro."},
		{"fr", "Il fait 20 °C.", "Il fait 20 degrés Celsius."},
		{"es", "Son 1 km y 2 km.", "Son 1 kilómetro y 2 kilómetros."},
		{"ja", "風は12km/hで、¥45です。", "風は時速12キロメートルで、45円です。"},
		{"zh-CN", "现在20°C，¥45。", "现在20摄氏度，45元。"},
		{"en", "It is worth $3 trillion, $20k, US$5 or £5m.", "It is worth 3 trillion dollars, $20k, US$5 or £5m."},
		{"it", "12 km/h", "12 km/h"},
	} {
		if got := language.UnitsOf(c.tag).Speak(c.text); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.tag, c.text, got, c.want)
		}
	}
	for _, tag := range []string{"en", "de", "fr", "es", "ja", "zh-Hans"} { // the same units in each
		for _, symbol := range []string{"km/h", "m/s", "m²", "°C", "kWh", "GB", "€"} {
			if got := language.UnitsOf(tag).Speak("3 " + symbol); strings.Contains(got, symbol) {
				t.Errorf("%s leaves %s", tag, symbol)
			}
		}
	}
}
