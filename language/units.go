package language

import (
	"regexp"
	"strings"
	"sync"
)

// unit is the spoken form of a number with a unit, with {n} for the number.
type unit struct {
	one  string // form for the number 1; empty if it does not differ from many
	many string // form for other numbers
}

// unitSymbols matches the symbols of units. "km/h" comes before "km", and so on, because the first alternative
// that matches is used.
const unitSymbols = `km/h|m/s|mph|km²|km2|m²|m2|m³|m3|°C|℃|°F|kWh|kW|hPa|km|cm|mm|kg|mg|ml|mL|GB|MB|°`

// Regular expressions of numbers with a unit or a currency. The currency may precede the number or, except $, follow it.
var (
	afterNumber = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(\d+(?:[.,]\d+)*)[ \x{a0}\x{202f}]?(` + unitSymbols + `)(?:([^A-Za-z0-9/])|$)`)
	})
	currency = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(^|[^\pL\pN])([¥￥€$£])[ \x{a0}]?(\d+(?:[.,]\d+)*(?: (?:million|billion|trillion|thousand)\b)?)(?:([^A-Za-z0-9])|$)|(\d+(?:[.,]\d+)*(?: (?:Millionen|Milliarden|Mio\.|Mrd\.|millions|milliards|millones)(?: de?)?)?)[ \x{a0}]?([¥￥€£])`)
	})
)

// keySymbol returns the key in Units for a symbol, such as "km²" for "km2".
func keySymbol(symbol string) string {
	return strings.NewReplacer("km2", "km²", "m2", "m²", "m3", "m³", "℃", "°C", "mL", "ml", "￥", "¥").Replace(symbol)
}

// Units holds the spoken forms of a language's units and currencies by their symbols.
type Units map[string]unit

// UnitsOf returns the units of a language, or nil if the language has no catalogue.
func UnitsOf(tag string) Units {
	match, _ := Match(tag)
	return allUnits()[match]
}

// HasNumber reports whether a sentence has a digit. Speak does not change a sentence without a digit.
func HasNumber(sentence string) bool { return strings.ContainsAny(sentence, "0123456789") }

// Speak returns a sentence with words in place of the symbols of units and currencies next to numbers, because
// synthesizers would spell the symbols.
func (units Units) Speak(sentence string) string {
	if units == nil || !HasNumber(sentence) {
		return sentence
	}
	inWords := func(symbol, number string) (string, bool) {
		u, found := units[keySymbol(symbol)]
		form := u.many
		if number == "1" && u.one != "" {
			form = u.one
		}
		return strings.ReplaceAll(form, "{n}", number), found
	}
	sentence = afterNumber().ReplaceAllStringFunc(sentence, func(found string) string {
		m := afterNumber().FindStringSubmatch(found)
		if text, ok := inWords(m[2], m[1]); ok {
			return text + m[3]
		}
		return found
	})
	return currency().ReplaceAllStringFunc(sentence, func(found string) string {
		m := currency().FindStringSubmatch(found)
		if text, ok := inWords(m[2]+m[6], m[3]+m[5]); ok {
			return m[1] + text + m[4]
		}
		return found
	})
}

// allUnits returns the units of each language.
var allUnits = sync.OnceValue(func() map[Tag]Units {
	return map[Tag]Units{
		English: {
			"km/h": {"{n} kilometre per hour", "{n} kilometres per hour"}, "m/s": {"{n} metre per second", "{n} metres per second"},
			"mph": {"{n} mile per hour", "{n} miles per hour"}, "km": {"{n} kilometre", "{n} kilometres"}, "cm": {"{n} centimetre", "{n} centimetres"},
			"mm": {"{n} millimetre", "{n} millimetres"}, "m²": {"{n} square metre", "{n} square metres"}, "m³": {"{n} cubic metre", "{n} cubic metres"},
			"km²": {"{n} square kilometre", "{n} square kilometres"}, "kg": {"{n} kilogram", "{n} kilograms"}, "mg": {"{n} milligram", "{n} milligrams"},
			"ml": {"{n} millilitre", "{n} millilitres"}, "°C": {"{n} degree Celsius", "{n} degrees Celsius"}, "°F": {"{n} degree Fahrenheit", "{n} degrees Fahrenheit"},
			"°": {"{n} degree", "{n} degrees"}, "kWh": {"{n} kilowatt hour", "{n} kilowatt hours"}, "kW": {"{n} kilowatt", "{n} kilowatts"},
			"hPa": {"{n} hectopascal", "{n} hectopascals"}, "GB": {"{n} gigabyte", "{n} gigabytes"}, "MB": {"{n} megabyte", "{n} megabytes"},
			"¥": {"", "{n} yen"}, "€": {"{n} euro", "{n} euros"}, "$": {"{n} dollar", "{n} dollars"}, "£": {"{n} pound", "{n} pounds"},
		},
		"de": {
			"km/h": {"", "{n} Kilometer pro Stunde"}, "m/s": {"", "{n} Meter pro Sekunde"}, "mph": {"{n} Meile pro Stunde", "{n} Meilen pro Stunde"},
			"km": {"", "{n} Kilometer"}, "cm": {"", "{n} Zentimeter"}, "mm": {"", "{n} Millimeter"}, "m²": {"", "{n} Quadratmeter"}, "m³": {"", "{n} Kubikmeter"},
			"km²": {"", "{n} Quadratkilometer"}, "kg": {"", "{n} Kilogramm"}, "mg": {"", "{n} Milligramm"}, "ml": {"", "{n} Milliliter"},
			"°C": {"", "{n} Grad Celsius"}, "°F": {"", "{n} Grad Fahrenheit"}, "°": {"", "{n} Grad"}, "kWh": {"{n} Kilowattstunde", "{n} Kilowattstunden"},
			"kW": {"", "{n} Kilowatt"}, "hPa": {"", "{n} Hektopascal"}, "GB": {"", "{n} Gigabyte"}, "MB": {"", "{n} Megabyte"},
			"¥": {"", "{n} Yen"}, "€": {"", "{n} Euro"}, "$": {"", "{n} Dollar"}, "£": {"", "{n} Pfund"},
		},
		"fr": {
			"km/h": {"{n} kilomètre par heure", "{n} kilomètres par heure"}, "m/s": {"{n} mètre par seconde", "{n} mètres par seconde"},
			"mph": {"{n} mile par heure", "{n} miles par heure"}, "km": {"{n} kilomètre", "{n} kilomètres"}, "cm": {"{n} centimètre", "{n} centimètres"},
			"mm": {"{n} millimètre", "{n} millimètres"}, "m²": {"{n} mètre carré", "{n} mètres carrés"}, "m³": {"{n} mètre cube", "{n} mètres cubes"},
			"km²": {"{n} kilomètre carré", "{n} kilomètres carrés"}, "kg": {"{n} kilogramme", "{n} kilogrammes"}, "mg": {"{n} milligramme", "{n} milligrammes"},
			"ml": {"{n} millilitre", "{n} millilitres"}, "°C": {"{n} degré Celsius", "{n} degrés Celsius"}, "°F": {"{n} degré Fahrenheit", "{n} degrés Fahrenheit"},
			"°": {"{n} degré", "{n} degrés"}, "kWh": {"{n} kilowattheure", "{n} kilowattheures"}, "kW": {"{n} kilowatt", "{n} kilowatts"},
			"hPa": {"{n} hectopascal", "{n} hectopascals"}, "GB": {"{n} gigaoctet", "{n} gigaoctets"}, "MB": {"{n} mégaoctet", "{n} mégaoctets"},
			"¥": {"", "{n} yens"}, "€": {"{n} euro", "{n} euros"}, "$": {"{n} dollar", "{n} dollars"}, "£": {"{n} livre", "{n} livres"},
		},
		"es": {
			"km/h": {"{n} kilómetro por hora", "{n} kilómetros por hora"}, "m/s": {"{n} metro por segundo", "{n} metros por segundo"},
			"mph": {"{n} milla por hora", "{n} millas por hora"}, "km": {"{n} kilómetro", "{n} kilómetros"}, "cm": {"{n} centímetro", "{n} centímetros"},
			"mm": {"{n} milímetro", "{n} milímetros"}, "m²": {"{n} metro cuadrado", "{n} metros cuadrados"}, "m³": {"{n} metro cúbico", "{n} metros cúbicos"},
			"km²": {"{n} kilómetro cuadrado", "{n} kilómetros cuadrados"}, "kg": {"{n} kilogramo", "{n} kilogramos"}, "mg": {"{n} miligramo", "{n} miligramos"},
			"ml": {"{n} mililitro", "{n} mililitros"}, "°C": {"{n} grado Celsius", "{n} grados Celsius"}, "°F": {"{n} grado Fahrenheit", "{n} grados Fahrenheit"},
			"°": {"{n} grado", "{n} grados"}, "kWh": {"{n} kilovatio hora", "{n} kilovatios hora"}, "kW": {"{n} kilovatio", "{n} kilovatios"},
			"hPa": {"{n} hectopascal", "{n} hectopascales"}, "GB": {"{n} gigabyte", "{n} gigabytes"}, "MB": {"{n} megabyte", "{n} megabytes"},
			"¥": {"{n} yen", "{n} yenes"}, "€": {"{n} euro", "{n} euros"}, "$": {"{n} dólar", "{n} dólares"}, "£": {"{n} libra", "{n} libras"},
		},
		"ja": {
			"km/h": {"", "時速{n}キロメートル"}, "m/s": {"", "秒速{n}メートル"}, "mph": {"", "時速{n}マイル"}, "km": {"", "{n}キロメートル"}, "cm": {"", "{n}センチメートル"},
			"mm": {"", "{n}ミリメートル"}, "m²": {"", "{n}平方メートル"}, "m³": {"", "{n}立方メートル"}, "km²": {"", "{n}平方キロメートル"}, "kg": {"", "{n}キログラム"},
			"mg": {"", "{n}ミリグラム"}, "ml": {"", "{n}ミリリットル"}, "°C": {"", "摂氏{n}度"}, "°F": {"", "華氏{n}度"}, "°": {"", "{n}度"}, "kWh": {"", "{n}キロワット時"},
			"kW": {"", "{n}キロワット"}, "hPa": {"", "{n}ヘクトパスカル"}, "GB": {"", "{n}ギガバイト"}, "MB": {"", "{n}メガバイト"},
			"¥": {"", "{n}円"}, "€": {"", "{n}ユーロ"}, "$": {"", "{n}ドル"}, "£": {"", "{n}ポンド"},
		},
		"zh-Hans": {
			"km/h": {"", "每小时{n}公里"}, "m/s": {"", "每秒{n}米"}, "mph": {"", "每小时{n}英里"}, "km": {"", "{n}公里"}, "cm": {"", "{n}厘米"}, "mm": {"", "{n}毫米"},
			"m²": {"", "{n}平方米"}, "m³": {"", "{n}立方米"}, "km²": {"", "{n}平方公里"}, "kg": {"", "{n}公斤"}, "mg": {"", "{n}毫克"}, "ml": {"", "{n}毫升"},
			"°C": {"", "{n}摄氏度"}, "°F": {"", "{n}华氏度"}, "°": {"", "{n}度"}, "kWh": {"", "{n}千瓦时"}, "kW": {"", "{n}千瓦"}, "hPa": {"", "{n}百帕"},
			"GB": {"", "{n}吉字节"}, "MB": {"", "{n}兆字节"}, "¥": {"", "{n}元"}, "€": {"", "{n}欧元"}, "$": {"", "{n}美元"}, "£": {"", "{n}英镑"},
		},
	}
})
