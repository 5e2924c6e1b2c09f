package web_test

import _ "github.com/chromedp/chromedp"
