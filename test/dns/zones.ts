/** The number of addresses of one name: more than fit into a datagram. */
export const MANY_ADDRESSES = 199;

const many = Array.from(
  { length: MANY_ADDRESSES },
  (_, at) => `many AAAA 2001:db8:9::${at.toString(16)}`,
);

/** All other punctuation, escaped by number because zone files do not accept all of it as it is. */
const everyOtherCharacter = [..."!#%&'*+,/:<=>?[]^_`{|}~"]
  .map((character) => `\\${String(character.charCodeAt(0)).padStart(3, "0")}`)
  .join("");

/** More links than resolvers follow. */
const LONG_CHAIN = Array.from({ length: 20 }, (_, at) => `link${at} CNAME link${at + 1}`).join(
  "\n",
);

/** Zones with the hard cases, in the format of knotd. */
export const ZONES = {
  "hard.example": `
$ORIGIN hard.example.
$TTL 300
@        SOA   NS1.Hard.Example. first\\.last.Example.COM. 4294967295 7200 3600 1209600 4294967295
@        NS    ns1
@        NS    NS2.Elsewhere.Example.
@        MX    10 mail
@        MX    65535 \\064\\036\\040weird\\041.Mail
@        A     192.0.2.1
@        AAAA  2001:db8::1
@        TXT   "v=spf1 -all"
ns1      AAAA  2001:db8::53
plain    AAAA  2001:db8::1
         AAAA  2001:DB8:0:0:1:0:0:1
         AAAA  ::ffff:192.0.2.1
         AAAA  ::
         AAAA  64:ff9b::192.0.2.1
         A     0.0.0.0
         A     255.255.255.255
compat   AAAA  ::192.0.2.1
zero  0  A     192.0.2.9
long  2147483647 A 192.0.2.9
nullmx   MX    0 .
rootptr  PTR   .
dot\\.ted AAAA 2001:db8::2
dot\\.ted TXT  "owner with a dot"
sp\\032ace  AAAA 2001:db8::3
\\200\\255\\000high AAAA 2001:db8::4
quo\\"te\\\\back\\;semi AAAA 2001:db8::5
MiXeD    CNAME TaRgEt.MiXeD2
target.mixed2 AAAA 2001:db8::6
names    PTR   do\\.t.example.
         PTR   sp\\ ace\\009tab.example.
         PTR   \\127\\128\\255.example.
         PTR   qu\\"o\\\\te\\;.example.
         PTR   p\\(ar\\)en.example.
         PTR   at\\@dollar\\$star*.example.
         PTR   MiXeD.CaSe.example.
         PTR   *.example.
         PTR   ${everyOtherCharacter}.example.
texts    TXT   "one"
         TXT   "several" "strings" "of one record"
         TXT   ""
         TXT   "" "among" "" "others" ""
         TXT   "quote \\" backslash \\\\ semicolon ; at @ dollar $"
         TXT   "tab\\009 nul\\000 del\\127 high\\128\\255 tilde~"
         TXT   "\\195\\169\\226\\130\\172"
         TXT   "   spaces   "
         TXT   "${"x".repeat(255)}" "${"y".repeat(255)}"
soa.sub  CNAME @
*.wild   AAAA  2001:db8::7
*.wild   TXT   "from the wildcard"
*.wildcname CNAME plain
a.b.ent  AAAA  2001:db8::8
one      CNAME two
two      CNAME three
three    CNAME four.Sub
four.sub CNAME plain
nowhere  CNAME missing
out      CNAME www.elsewhere.example.
loop1    CNAME loop2
loop2    CNAME loop1
self     CNAME self
tree     DNAME sub
deleg    NS    ns.deleg
ns.deleg AAAA  2001:db8::53
ptr      PTR   Host.Name.example.
         PTR   .
${many.join("\n")}
`,
  "types.example": `
$ORIGIN types.example.
$TTL 300
@ SOA ns hostmaster 1 2 3 4 5
@ NS ns
ns AAAA ::1
@ CAA 0 issue "ca.example; account=\\"a\\\\b\\""
@ CAA 128 iodef "mailto:a@b\\009\\200"
@ CAA 0 issue ""
_sip._tcp SRV 10 20 443 Host.Types.example.
_sip._tcp SRV 0 0 0 .
https HTTPS 1 . alpn="h3,h2" ipv4hint=192.0.2.1,192.0.2.2 ech=AEX+DQBBpQAgACB0 ipv6hint=2001:db8::1,::ffff:192.0.2.1 port=8443
https HTTPS 0 other.example.
https HTTPS 2 a\\.b.example. mandatory=alpn,port alpn=h2 no-default-alpn port=1
https TYPE65 \\# 23 0003 00 0001 0010 06666f6f2c225c 0480093b40 03682032
https TYPE65 \\# 32 0004 00 0007 0010 2f646e732d71756572797b3f646e737d 029a 0005 61225c2c80
https TYPE65 \\# 7 0005 00 029b 0000
svcb SVCB 1 svc.example. key667="hello\\210qoo"
ds DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118
ds DS 1 13 4 ${"00112233445566778899AABBCCDDEEFF".repeat(3)}
key DNSKEY 257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==
_443._tcp TLSA 3 1 1 ${"00112233445566778899AABBCCDDEEFF".repeat(2)}
_443._tcp TLSA 0 0 0 00
ssh SSHFP 4 2 ${"00112233445566778899AABBCCDDEEFF".repeat(2)}
ssh SSHFP 1 1 ${"0011223344".repeat(4)}
naptr NAPTR 100 10 "S" "SIP+D2U" "" _sip._udp.example.com.
naptr NAPTR 100 50 "u" "E2U+sip" "!^.*$!sip:in\\\\fo@\\"e\\" \\009\\200!" .
unknown TYPE65280 \\# 4 0A000001
unknown TYPE65280 \\# 0
unknown TYPE65280 \\# 40 ${"00".repeat(40)}
signature RRSIG A 13 3 300 20300101000000 20200101000000 12345 types.example. mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==
alias CNAME https
loc LOC 51 30 12.748 N 0 7 39.611 W 24.50m 30m 10000m 10m
loc LOC 0 0 0.001 S 179 59 59.999 E -100.05m 0.05m 1m 2m
apl APL 1:192.168.32.0/21 !1:192.168.38.0/28 2:2001:db8::/32 2:::/0
cert CERT PGP 12345 RSASHA256 mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==
cert CERT 65534 0 0 AAEC
hinfo HINFO "a CPU" "an \\"OS\\""
rp RP First.Last.Example. Text.Example.
uri URI 10 1 "ftp://host.example/\\"a b"
eui EUI48 00-00-5e-00-53-2A
eui EUI64 00-00-5e-ef-10-00-00-2a
pgp OPENPGPKEY mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==
smime SMIMEA 3 1 1 ${"00112233445566778899AABBCCDDEEFF".repeat(2)}
csync CSYNC 4294967295 3 A NS AAAA TYPE65280
zonemd ZONEMD 2018031500 1 1 ${"00112233445566778899AABBCCDDEEFF".repeat(3)}
cds CDS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118
cds CDNSKEY 257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==
dname DNAME Other.Example.
dname2 DNAME .
nsec NSEC a.b.Types.Example. A MX RRSIG NSEC TYPE1234 CAA
afsdb AFSDB 1 AFS.Example.
kx KX 10 KX.Example.
minfo MINFO a.example. B.Example.
rt RT 10 a.example.
l32 L32 10 192.0.2.1
lp LP 10 Locator.Example.
nid NID 10 0014:4fff:ff20:ee64
l64 L64 65535 2001:0db8:0000:1000
ipsec IPSECKEY 10 1 2 192.0.2.38 AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==
ipsec IPSECKEY 255 0 2 . AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==
ipsec IPSECKEY 10 2 2 2001:db8:0:8002::2000:1 AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==
ipsec IPSECKEY 10 3 2 My.Gateway.Example. AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==
amt TYPE260 \\# 6 0a01cb00710f
amt TYPE260 \\# 2 0080
amt TYPE260 \\# 18 8a0220010db8000000000000000000000015
amt TYPE260 \\# 13 8003 0341 6d74 0545 7861 6d70 00
hip TYPE55 \\# 26 10 02 0002 200100107b1a74df365639cc39f1d578 aabb 0241 6200
hip TYPE55 \\# 22 10 02 0002 200100107b1a74df365639cc39f1d578 aabb
dhcid DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=
spf SPF "v=spf1 -all" "x"
${LONG_CHAIN}
`,
  "8.b.d.0.1.0.0.2.ip6.arpa": `
$ORIGIN 8.b.d.0.1.0.0.2.ip6.arpa.
$TTL 60
@ SOA ns.example. hostmaster.example. 1 2 3 4 5
@ NS ns.example.
${"1".padEnd(47, ".0").slice(0, 47)} PTR Host-1.Example.
`,
  "2.0.192.in-addr.arpa": `
$ORIGIN 2.0.192.in-addr.arpa.
$TTL 60
@ SOA ns.example. hostmaster.example. 1 2 3 4 5
@ NS ns.example.
1 CNAME 1.0/25
1.0/25 PTR host-1.example.
`,
} as const;
