package e2e

import (
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/shared/e2e"
	"example.com/workbook/shared/expect"
)

var greetingElement = regexp.MustCompile(`(?s)<p id="greeting"[^>]*>(.*?)</p>`)

// greetingAt is the greeting that a browser would show at an address.
func greetingAt(ctx context.Context, g Gomega, url string) string {
	status, page, err := env.NodeGet(ctx, url, http.Header{"Accept": {"text/html"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(Equal(http.StatusOK))
	found := greetingElement.FindStringSubmatch(page)
	g.Expect(found).To(HaveLen(2), "the page has no greeting:\n%s", page)
	return html.UnescapeString(found[1])
}

// expectGreeting asserts that every node shows the greeting, on every one of a few requests: the
// Service spreads them over the pods.
func expectGreeting(ctx context.Context, port int32, greeting string) {
	GinkgoHelper()
	urls, err := env.NodeURLs(ctx, port)
	Expect(err).NotTo(HaveOccurred())
	Expect(len(urls)).To(BeNumerically(">=", 2), "a cluster with several nodes")
	for _, url := range urls {
		Eventually(ctx, func(g Gomega) {
			for range 5 {
				g.Expect(greetingAt(ctx, g, url)).To(Equal(greeting))
			}
		}).WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(Succeed())
	}
}

func expectRefused(ctx context.Context, port int32) {
	GinkgoHelper()
	urls, err := env.NodeURLs(ctx, port)
	Expect(err).NotTo(HaveOccurred())
	for _, url := range urls {
		Eventually(ctx, func() error {
			_, _, err := env.NodeGet(ctx, url, nil)
			return err
		}).WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(HaveOccurred(), "%s still answers", url)
	}
}

var _ = Describe("Serving", func() {
	It("follows the spec: greeting, port and replicas, with nothing deleted by hand", func(ctx SpecContext) {
		lolcow := create(ctx, env.Namespace(ctx, e2e.Restricted), "cow",
			v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30041))})
		expectServing(ctx, lolcow)
		Expect(lolcow.Status.Greeting).To(Equal("Moo"))
		Expect(lolcow.Status.Port).To(Equal(int32(30041)))

		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Greeting, spec.Replicas = "Baa", new(int32(2)) })
		expectServing(ctx, lolcow)
		Expect(lolcow.Status.Greeting).To(Equal("Baa"))

		service := serviceOf(lolcow)
		refresh(ctx, service)
		uid := service.UID
		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Port = new(int32(30042)) })
		expectServing(ctx, lolcow)
		Expect(lolcow.Status.Port).To(Equal(int32(30042)))
		refresh(ctx, service)
		Expect(service.UID).To(Equal(uid), "changed in place")

		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Replicas = new(int32(0)) })
		expectNotReady(ctx, lolcow, v1alpha1.ReasonScaledToZero)
		Expect(lolcow.Status.Greeting).To(BeEmpty())
	})

	It("SeedBug: the greeting reaches the page, at the port of the spec, through every node", Label(e2e.LabelContainers), func(ctx SpecContext) {
		lolcow := create(ctx, env.Namespace(ctx, e2e.Restricted), "cow",
			v1alpha1.LolcowSpec{Greeting: "Moo", Port: new(int32(30043))})
		expectServing(ctx, lolcow)
		expectGreeting(ctx, 30043, "Moo")

		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Greeting = "Baa" })
		expectServing(ctx, lolcow)
		expectGreeting(ctx, 30043, "Baa")

		change(ctx, lolcow, func(spec *v1alpha1.LolcowSpec) { spec.Port = new(int32(30044)) })
		expectGreeting(ctx, 30044, "Baa")
		expectRefused(ctx, 30043)
	})

	It("shows any greeting as it is written", Label(e2e.LabelContainers), func(ctx SpecContext) {
		namespace := env.Namespace(ctx)
		greetings := map[string]string{
			"html":      `<script>alert("moo")</script><b>&amp;</b>`,
			"shell":     "; reboot && $(reboot) `id` $HOSTNAME $(HOSTNAME) $$ | tee > /dev/null",
			"emoji":     "\U0001F42E says \U0001F44B\U0001F3FD",
			"newlines":  "one\ntwo\n\nfour",
			"quotes":    `"it's" \"quoted\" \n`,
			"dash":      "--help",
			"long-word": strings.Repeat("m", 1024),
		}
		lolcows := map[string]*v1alpha1.Lolcow{}
		for name, greeting := range greetings {
			lolcows[name] = create(ctx, namespace, name, v1alpha1.LolcowSpec{Greeting: greeting})
		}
		for name, lolcow := range lolcows {
			expectServing(ctx, lolcow)
			Expect(lolcow.Status.Greeting).To(Equal(greetings[name]))
			expectGreeting(ctx, lolcow.Status.Port, greetings[name])
		}
	})

	It("serves a fortune where no greeting is given, and text where text is asked for", Label(e2e.LabelContainers), func(ctx SpecContext) {
		lolcow := create(ctx, env.Namespace(ctx), "cow", v1alpha1.LolcowSpec{})
		expectServing(ctx, lolcow)
		Expect(lolcow.Status.Greeting).To(BeEmpty())
		urls, err := env.NodeURLs(ctx, lolcow.Status.Port)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			g.Expect(greetingAt(ctx, g, urls[0])).NotTo(BeEmpty())
			status, text, err := env.NodeGet(ctx, urls[0], http.Header{"Accept": {"text/plain"}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusOK))
			g.Expect(text).To(ContainSubstring("(oo)"))
			g.Expect(text).NotTo(ContainSubstring("<html"))
		}).WithTimeout(expect.Soon).WithPolling(expect.Interval).Should(Succeed())
	})
})
